//! SQS calls that fail in the middle of an operation of the queue.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_sqs::types::MessageAttributeValue;
use sparks_aws::{QueueUrls, SqsQueue, Timing};
use sparks_engine::{Cause, DeadLetters, Queue, QueueDepth, Settlement};
use sparks_tests::{
    emulator::{self, Emulator},
    proxy::Proxy,
};
use tokio::time::sleep;

const MAX_CRASHES: u32 = 1000;

/// Returns the queue behind a proxy.
async fn queue(proxy: &Proxy, queues: &QueueUrls, visibility_seconds: u64) -> SqsQueue {
    let timing = Timing { visibility_timeout: Duration::from_secs(visibility_seconds), poll: Duration::ZERO };
    SqsQueue::new(&emulator::connect(&proxy.endpoint()).await, queues.clone(), timing, MAX_CRASHES)
}

/// Fails all calls of `ReceiveMessage` except the first ones.
fn fail_receives_after(proxy: &Proxy, succeeding: usize) {
    let calls = AtomicUsize::new(0);
    proxy.intercept(move |target, _| {
        let fails = target == "AmazonSQS.ReceiveMessage" && calls.fetch_add(1, Ordering::Relaxed) >= succeeding;
        fails.then(|| (500, String::new()))
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_received_before_a_failing_call_are_returned() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let queue = queue(&proxy, &emulator.queues(MAX_CRASHES).await, 60).await;
    for n in 0..12 {
        queue.send("m", &n.to_string()).await.unwrap();
    }
    fail_receives_after(&proxy, 1);
    let first = queue.receive(12).await.unwrap();
    assert_eq!(first.len(), 10);
    assert!(queue.receive(12).await.is_err(), "a failing first call is no empty queue");
    proxy.intercept(|_, _| None);
    let rest = queue.receive(12).await.unwrap();
    assert_eq!(rest.len(), 2);
    for delivery in first.into_iter().chain(rest) {
        assert_eq!(delivery.receives, 1);
        queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
    }
    assert_eq!(queue.depth().await.unwrap(), QueueDepth::default());
}

/// A FIFO queue has a second queue for delayed copies, which is received from first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_delayed_copy_is_returned_though_the_work_queue_fails() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let queue = queue(&proxy, &emulator.fifo_queues(MAX_CRASHES).await, 60).await;
    let id = queue.send("m", "d").await.unwrap();
    let delivery = queue.receive(1).await.unwrap().remove(0);
    queue.settle(delivery, Settlement::Defer(Duration::ZERO)).await.unwrap();
    fail_receives_after(&proxy, 1);
    let received = queue.receive(5).await.unwrap();
    assert_eq!(received.iter().map(|delivery| (&delivery.id, delivery.receives)).collect::<Vec<_>>(), [(&id, 1)]);
}

/// Lets deletions fail while the flag is set.
fn fail_deletions(proxy: &Proxy) -> Arc<AtomicBool> {
    let failing = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&failing);
    proxy.intercept(move |target, _| {
        (target.contains("DeleteMessage") && fails.load(Ordering::Relaxed)).then(|| (500, String::new()))
    });
    failing
}

/// A worker repeats a settlement that failed, because the queue may have been down.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repeated_settlement_replaces_the_message_once() {
    let emulator = Emulator::start().await;
    let (cause, reason) = (Cause::Fault, "test".to_owned());
    for settlement in [Settlement::Defer(Duration::ZERO), Settlement::Release, Settlement::DeadLetter { cause, reason }]
    {
        let proxy = Proxy::start(&emulator.endpoint()).await;
        let queue = queue(&proxy, &emulator.queues(MAX_CRASHES).await, 60).await;
        queue.send("m", "d").await.unwrap();
        let delivery = queue.receive(1).await.unwrap().remove(0);
        let failing = fail_deletions(&proxy);
        for _ in 0..3 {
            assert!(queue.settle(delivery.clone(), settlement.clone()).await.is_err());
        }
        failing.store(false, Ordering::Relaxed);
        queue.settle(delivery, settlement.clone()).await.unwrap();
        let QueueDepth { waiting, leased, delayed, dead, .. } = queue.depth().await.unwrap();
        assert_eq!(waiting + leased + delayed + dead, 1, "messages after {settlement:?}");
    }
}

/// Counts all messages and dead letters.
async fn count(queue: &SqsQueue) -> u64 {
    let QueueDepth { waiting, leased, delayed, dead, .. } = queue.depth().await.unwrap();
    waiting + leased + delayed + dead
}

/// Each of two workers receives all messages and settles them, for several visibility timeouts in which deletions fail.
async fn settle_while_deletions_fail(settlement: Settlement) -> (u64, u64) {
    let emulator = Emulator::start().await;
    let (proxy, queues) = (Proxy::start(&emulator.endpoint()).await, emulator.queues(MAX_CRASHES).await);
    let workers = [queue(&proxy, &queues, 2).await, queue(&proxy, &queues, 2).await];
    workers[0].send("m", "d").await.unwrap();
    let failing = fail_deletions(&proxy);
    for _ in 0..6 {
        for worker in &workers {
            for delivery in worker.receive(10).await.unwrap() {
                let _ = worker.settle(delivery, settlement.clone()).await;
            }
        }
        sleep(Duration::from_millis(2200)).await;
    }
    let during = count(&workers[0]).await;
    failing.store(false, Ordering::Relaxed);
    let mut ids = BTreeSet::new();
    for _ in 0..4 {
        for worker in &workers {
            for delivery in worker.receive(10).await.unwrap() {
                ids.insert(delivery.id.clone());
                let _ = worker.settle(delivery, settlement.clone()).await;
            }
        }
        sleep(Duration::from_millis(2200)).await;
    }
    assert!(ids.len() <= 1, "copies have other IDs: {ids:?}");
    (during, count(&workers[0]).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_do_not_multiply_while_deletions_fail() {
    let (deferred, released) = tokio::join!(
        settle_while_deletions_fail(Settlement::Defer(Duration::ZERO)),
        settle_while_deletions_fail(Settlement::Release)
    );
    for (during, after) in [deferred, released] {
        assert!(during <= 3, "{during} messages while deletions fail: the message, and a copy by each worker");
        assert!((1..=2).contains(&after), "{after} messages after deletions succeed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dead_letters_do_not_multiply_while_deletions_fail() {
    let settlement = Settlement::DeadLetter { cause: Cause::Fault, reason: "test".to_owned() };
    let (during, after) = settle_while_deletions_fail(settlement).await;
    assert!(during <= 3, "{during} messages while deletions fail: the message, and a dead letter by each worker");
    assert!((1..=2).contains(&after), "{after} messages after deletions succeed");
}

/// An operator may move dead letters back with the console of AWS, which keeps their attributes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dead_letter_that_aws_moves_back_is_delivered() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let queues = emulator.queues(MAX_CRASHES).await;
    let queue = queue(&proxy, &queues, 60).await;
    let id = queue.send("m", "d").await.unwrap();
    let delivery = queue.receive(1).await.unwrap().remove(0);
    queue.settle(delivery, Settlement::Defer(Duration::ZERO)).await.unwrap();
    let delivery = queue.receive(1).await.unwrap().remove(0);
    let reason = "test".to_owned();
    queue.settle(delivery, Settlement::DeadLetter { cause: Cause::Fault, reason }).await.unwrap();

    let client = emulator.connect().await.sqs();
    let received =
        client.receive_message().queue_url(&queues.dead).message_attribute_names("All").send().await.unwrap();
    let letter = received.messages.unwrap().remove(0);
    let send = client.send_message().queue_url(&queues.work).message_body(letter.body.unwrap());
    send.set_message_attributes(letter.message_attributes).send().await.unwrap();
    let delivery = queue.receive(1).await.unwrap().remove(0);
    assert_eq!((&delivery.id, delivery.body.as_str()), (&id, "m"));
    queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
    assert_eq!(queue.list(None, 10).await.unwrap().len(), 0, "it is leased by the test");
}

/// Copies of the previous release have no number. One may be the only copy that is left, even if this process knows a later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_without_a_number_is_never_taken_for_a_replaced_one() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let urls = emulator.queues(MAX_CRASHES).await;
    let queue = queue(&proxy, &urls, 60).await;
    queue.send("m", "1").await.unwrap();
    for _ in 0..2 {
        let delivery = queue.receive(1).await.unwrap().remove(0);
        queue.settle(delivery, Settlement::Defer(Duration::ZERO)).await.unwrap();
    }
    let copy = queue.receive(1).await.unwrap().remove(0);
    // As the previous release defers it: with ID, time and attempts alone.
    let client = emulator.connect().await.sqs();
    let attribute = |kind: &str, value: String| {
        MessageAttributeValue::builder().data_type(kind).string_value(value).build().unwrap()
    };
    let send = client.send_message().queue_url(&urls.work).message_body(&copy.body);
    let send = send
        .message_attributes("sparks.id", attribute("String", copy.id.0.clone()))
        .message_attributes("sparks.sent", attribute("Number", copy.sent.as_millis().to_string()))
        .message_attributes("sparks.receives", attribute("Number", "0".into()));
    send.send().await.unwrap();
    client.delete_message().queue_url(&urls.work).receipt_handle(&copy.receipt).send().await.unwrap();

    for _ in 0..2 {
        let delivery = queue.receive(1).await.unwrap().pop().expect("the copy is delivered");
        assert_eq!((&delivery.id, delivery.receives), (&copy.id, 1));
        queue.settle(delivery, Settlement::Defer(Duration::ZERO)).await.unwrap();
    }
    let delivery = queue.receive(1).await.unwrap().pop().expect("and so are copies of it");
    queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), QueueDepth::default());
}
