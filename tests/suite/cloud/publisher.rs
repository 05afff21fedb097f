//! The SNS adapter of the publisher.

use std::time::Duration;

use serde_json::{Value, json};
use sparks_aws::{QueueUrls, SnsPublisher, SqsQueue, Timing, Topics};
use sparks_engine::{Notification, Publisher, Queue, Topic};
use sparks_tests::emulator::Emulator;

fn notification(topic: Topic, n: usize) -> Notification {
    Notification {
        topic,
        event_type: "PhotoProcessed".into(),
        deduplication: format!("name {n}"),
        group: "a group".into(),
        body: json!({ "n": n, "text": "ümläut" }),
    }
}

async fn receive_all(queue: &SqsQueue) -> Vec<Value> {
    let mut bodies = Vec::new();
    for _ in 0..50 {
        let received = queue.receive(100).await.unwrap();
        if received.is_empty() && !bodies.is_empty() {
            break;
        }
        for delivery in received {
            bodies.push(serde_json::from_str(&delivery.body).unwrap());
            queue.settle(delivery, sparks_engine::Settlement::Acknowledge).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bodies
}

async fn queue_and_publisher(emulator: &Emulator, queues: QueueUrls, topic: String) -> (SqsQueue, SnsPublisher) {
    let connection = emulator.connect().await;
    let timing = Timing { visibility_timeout: Duration::from_secs(60), poll: Duration::ZERO };
    let queue = SqsQueue::new(&connection, queues, timing, 25);
    (queue, SnsPublisher::new(&connection, Topics { events: Some(topic), thumbnail_completed: None }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_notification_reaches_the_subscribed_queue() {
    let emulator = Emulator::start().await;
    let (queues, topic) = emulator.topic_with_queue(false).await;
    let (queue, publisher) = queue_and_publisher(&emulator, queues, topic).await;
    publisher.check().await.unwrap();
    // More than fit into one request, and one for a topic that is not configured.
    let notifications: Vec<_> = (0..23).map(|n| notification(Topic::Events, n)).collect();
    publisher.publish(&notifications).await.unwrap();
    publisher.publish(&[notification(Topic::ThumbnailCompleted, 99)]).await.unwrap();
    let mut numbers: Vec<_> = receive_all(&queue).await.iter().map(|body| body["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..23).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fifo_topic_drops_repeated_notifications() {
    let emulator = Emulator::start().await;
    let (queues, topic) = emulator.topic_with_queue(true).await;
    let (queue, publisher) = queue_and_publisher(&emulator, queues, topic).await;
    for _ in 0..3 {
        publisher.publish(&[notification(Topic::Events, 1), notification(Topic::Events, 2)]).await.unwrap();
    }
    // The second is delivered after the first of its group is acknowledged.
    let (first, second) = (receive_all(&queue).await, receive_all(&queue).await);
    let mut numbers: Vec<_> = first.iter().chain(&second).map(|body| body["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_missing_topic_is_reported_with_the_remedy() {
    let emulator = Emulator::start().await;
    let topic = "arn:aws:sns:eu-central-1:000000000000:missing".to_owned();
    let topics = Topics { events: Some(topic.clone()), thumbnail_completed: None };
    let publisher = SnsPublisher::new(&emulator.connect().await, topics);
    for refused in [publisher.check().await, publisher.publish(&[notification(Topic::Events, 1)]).await] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&topic) && text.contains("sparks setup"), "{text}");
    }
}
