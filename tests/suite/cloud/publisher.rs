//! What others are told through SNS.

use std::time::Duration;

use serde_json::{Value, json};
use sparks_aws::{Queues, SnsPublisher, SqsQueue, Timing, Topics};
use sparks_engine::{Notice, Publisher, Queue, Topic};
use sparks_tests::emulator::Emulator;

fn notice(topic: Topic, n: usize) -> Notice {
    Notice {
        topic,
        event_type: "PhotoProcessed".into(),
        deduplication: format!("name {n}"),
        group: "a group".into(),
        body: json!({ "n": n, "text": "ümläut" }),
    }
}

async fn heard(queue: &SqsQueue) -> Vec<Value> {
    let mut heard = Vec::new();
    for _ in 0..50 {
        let received = queue.receive(100).await.unwrap();
        if received.is_empty() && !heard.is_empty() {
            break;
        }
        for delivery in received {
            heard.push(serde_json::from_str(&delivery.body).unwrap());
            queue.settle(delivery, sparks_engine::Settlement::Done).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    heard
}

async fn publishes(emulator: &Emulator, queues: Queues, topic: String) -> (SqsQueue, SnsPublisher) {
    let connection = emulator.connect().await;
    let timing = Timing { visibility: Duration::from_secs(60), poll: Duration::ZERO };
    let queue = SqsQueue::new(&connection, queues, timing, 25);
    (queue, SnsPublisher::new(&connection, Topics { events: Some(topic), thumbnail_completed: None }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_notice_reaches_whoever_listens() {
    let emulator = Emulator::start().await;
    let (queues, topic) = emulator.topic_heard_by_queue(false).await;
    let (queue, publisher) = publishes(&emulator, queues, topic).await;
    publisher.check().await.unwrap();
    // More than one request takes, and some that nobody hears.
    let notices: Vec<_> = (0..23).map(|n| notice(Topic::Events, n)).collect();
    publisher.publish(&notices).await.unwrap();
    publisher.publish(&[notice(Topic::ThumbnailCompleted, 99)]).await.unwrap();
    let mut numbers: Vec<_> = heard(&queue).await.iter().map(|body| body["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..23).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repeat_to_a_fifo_topic_is_dropped_there() {
    let emulator = Emulator::start().await;
    let (queues, topic) = emulator.topic_heard_by_queue(true).await;
    let (queue, publisher) = publishes(&emulator, queues, topic).await;
    for _ in 0..3 {
        publisher.publish(&[notice(Topic::Events, 1), notice(Topic::Events, 2)]).await.unwrap();
    }
    // The second comes when the first of its group is done.
    let (first, second) = (heard(&queue).await, heard(&queue).await);
    let mut numbers: Vec<_> = first.iter().chain(&second).map(|body| body["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_topic_that_is_not_there_is_named_with_the_remedy() {
    let emulator = Emulator::start().await;
    let topic = "arn:aws:sns:eu-central-1:000000000000:nobody".to_owned();
    let topics = Topics { events: Some(topic.clone()), thumbnail_completed: None };
    let publisher = SnsPublisher::new(&emulator.connect().await, topics);
    for refused in [publisher.check().await, publisher.publish(&[notice(Topic::Events, 1)]).await] {
        let words = refused.unwrap_err().to_string();
        assert!(words.contains(&topic) && words.contains("sparks setup"), "{words}");
    }
}
