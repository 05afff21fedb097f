//! SQS queues, standard and FIFO, keep the queue contract within the capabilities of SQS.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sparks_aws::{QueueUrls, SqsQueue, Timing};
use sparks_engine::{Cause, DeadLetters, MessageId, Queue, QueueDepth, Settlement};
use sparks_tests::{
    contract::{self, Deduplication, LeaseDuration, QueueCapabilities, QueueFixture},
    emulator::{self, Emulator},
    proxy::Proxy,
};
use tokio::task::JoinSet;

/// Numbers of crashes after which a message is a dead letter.
const MANY: u32 = 25;
const FEW: u32 = 2;

async fn fixture(emulator: &Emulator, queues: QueueUrls, leases: LeaseDuration, max_deaths: u32) -> QueueFixture {
    let connection = emulator.connect().await;
    let visibility = Duration::from_secs(match leases {
        LeaseDuration::Long => 60,
        LeaseDuration::Short => 2,
    });
    let timing = Timing { visibility_timeout: visibility, poll: Duration::ZERO };
    let queue = Arc::new(SqsQueue::new(&connection, queues.clone(), timing, max_deaths));
    let other = Arc::new(SqsQueue::new(&connection, queues, timing, max_deaths));
    let dead_letters = Arc::clone(&queue) as Arc<dyn DeadLetters>;
    QueueFixture { queue, other, dead_letters, visibility, capabilities: QueueCapabilities::NONE }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standard_queue_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let make = async |leases| fixture(&emulator, emulator.queues(MANY).await, leases, MANY).await;
    contract::queue(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fifo_queue_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let make = async |leases| {
        let fixture = fixture(&emulator, emulator.fifo_queues(MANY).await, leases, MANY).await;
        QueueFixture {
            capabilities: QueueCapabilities { deduplication: Deduplication::TimeWindow, ..QueueCapabilities::NONE },
            ..fixture
        }
    };
    contract::queue(make).await.assert_passed();
}

/// Receives the message without settling it, as crashing workers do, until it is a dead letter.
async fn check_dead_letter_after_crashes(fixture: &QueueFixture, sent: &MessageId) {
    let mut receives = 0;
    while fixture.queue.depth().await.unwrap().dead == 0 {
        receives += fixture.queue.receive(1).await.unwrap().len();
        assert!(receives <= FEW as usize, "it was received {receives} times");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(receives, FEW as usize);
    let dead_letters = fixture.dead_letters.list(None, 10).await.unwrap();
    assert_eq!(dead_letters.len(), 1);
    assert_eq!(
        (&dead_letters[0].id, dead_letters[0].body.as_str(), dead_letters[0].cause.as_str()),
        (sent, "deadly", "worker-died")
    );
    assert!(fixture.dead_letters.replay(&dead_letters[0].id).await.unwrap().is_some());
    let delivery = fixture.queue.receive(1).await.unwrap().remove(0);
    assert_eq!((delivery.body.as_str(), delivery.receives), ("deadly", 1));
}

/// SQS itself moves a message that no worker settles, and the dead letter has the cause `worker-died`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_moved_by_the_redrive_policy_has_its_own_cause() {
    let emulator = Emulator::start().await;
    let fixture = fixture(&emulator, emulator.queues(FEW).await, LeaseDuration::Short, FEW).await;
    let sent = fixture.queue.send("deadly", "d").await.unwrap();
    check_dead_letter_after_crashes(&fixture, &sent).await;
}

/// A redrive policy cannot move messages from a standard queue to a FIFO dead-letter queue, so the receiving worker does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deferred_message_of_a_fifo_queue_is_a_dead_letter_too() {
    let emulator = Emulator::start().await;
    let fixture = fixture(&emulator, emulator.fifo_queues(FEW).await, LeaseDuration::Short, FEW).await;
    let sent = fixture.queue.send("deadly", "d").await.unwrap();
    // Deferring is not counted as a crash.
    for _ in 0..2 * FEW {
        let delivery = fixture.queue.receive(1).await.unwrap().remove(0);
        assert_eq!(delivery.receives, 1);
        fixture.queue.settle(delivery, Settlement::Defer(Duration::ZERO)).await.unwrap();
    }
    check_dead_letter_after_crashes(&fixture, &sent).await;
    assert_eq!(
        fixture.queue.depth().await.unwrap(),
        QueueDepth { leased: 1, ..QueueDepth::default() },
        "no copy is left"
    );
}

/// Entries of a batch may fail: they are deleted again before the acknowledgement returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failed_entries_of_a_deletion_batch_are_retried() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility_timeout: Duration::from_secs(60), poll: Duration::ZERO };
    let connection = emulator::connect(&proxy.endpoint()).await;
    let queue = Arc::new(SqsQueue::new(&connection, emulator.queues(MANY).await, timing, MANY));
    let failures = AtomicUsize::new(3);
    proxy.intercept(move |target, body| {
        let fails = target == "AmazonSQS.DeleteMessageBatch"
            && failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let entries: Value = serde_json::from_slice(body).unwrap_or_default();
        let failed = |entry: &Value| json!({ "Id": entry["Id"], "SenderFault": false, "Code": "InternalError" });
        let failed: Vec<Value> = entries["Entries"].as_array()?.iter().map(failed).collect();
        fails.then(|| (200, json!({ "Successful": [], "Failed": failed }).to_string()))
    });
    for n in 0..12 {
        queue.send("m", &n.to_string()).await.unwrap();
    }
    let received = queue.receive(12).await.unwrap();
    assert_eq!(received.len(), 12);
    proxy.take_requests();
    let mut settling = JoinSet::new();
    for delivery in received {
        let queue = Arc::clone(&queue);
        settling.spawn(async move { queue.settle(delivery, Settlement::Acknowledge).await });
    }
    settling.join_all().await.into_iter().for_each(|settled| settled.unwrap());
    assert_eq!(queue.depth().await.unwrap(), QueueDepth::default());
    let requests = proxy.take_requests().iter().filter(|target| target.ends_with("DeleteMessageBatch")).count();
    assert!((4..12).contains(&requests), "{requests} requests for 12 messages with three failing ones");
}

/// Creates this many dead letters.
async fn create_dead_letters(queue: &SqsQueue, count: usize) {
    for n in 0..count {
        queue.send("m", &n.to_string()).await.unwrap();
    }
    let mut created = 0;
    while created < count {
        for delivery in queue.receive(10).await.unwrap() {
            let (cause, reason) = (Cause::Fault, "test".to_owned());
            queue.settle(delivery, Settlement::DeadLetter { cause, reason }).await.unwrap();
            created += 1;
        }
    }
}

/// Listing, replaying and discarding many dead letters receives each of them once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_dead_letters_are_received_once_and_replayed_under_one_lease() {
    const DEAD_LETTERS: usize = 35;
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility_timeout: Duration::from_secs(60), poll: Duration::ZERO };
    let (queues, connection) = (emulator.queues(MANY).await, emulator::connect(&proxy.endpoint()).await);
    let queue = SqsQueue::new(&connection, queues.clone(), timing, MANY);
    create_dead_letters(&queue, DEAD_LETTERS).await;
    proxy.take_requests();
    queue.lease_all().await.unwrap();
    let (mut count, mut after) = (0, None);
    loop {
        let page = queue.list(after.as_ref(), 10).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for letter in &page {
            match count % 3 {
                0 => assert!(queue.replay(&letter.id).await.unwrap().is_some()),
                1 => assert!(queue.discard(&letter.id).await.unwrap()),
                _ => {}
            }
            count += 1;
        }
    }
    queue.release_all().await.unwrap();
    assert_eq!(count, DEAD_LETTERS);
    let reads = proxy.take_requests().iter().filter(|target| target.ends_with("ReceiveMessage")).count();
    assert!(reads <= DEAD_LETTERS / 10 + 3, "{reads} requests to read {DEAD_LETTERS} dead letters");
    let other = SqsQueue::new(&emulator.connect().await, queues, timing, MANY);
    assert_eq!(other.list(None, 100).await.unwrap().len(), DEAD_LETTERS / 3, "the rest is visible to other workers");
}

/// If leases end before all dead letters are read, the first ones are received again: reading stops there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dead_letters_received_again_during_listing_are_listed_once() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility_timeout: Duration::from_secs(60), poll: Duration::ZERO };
    let connection = emulator::connect(&proxy.endpoint()).await;
    let queue = SqsQueue::new(&connection, emulator.queues(MANY).await, timing, MANY);
    let receives = AtomicUsize::new(0);
    proxy.intercept(move |target, _| match target {
        "AmazonSQS.ReceiveMessage" => {
            // Two dead letters in turns, each time with another receipt.
            let n = receives.fetch_add(1, Ordering::Relaxed);
            let attributes = json!({ "ApproximateReceiveCount": "1", "SentTimestamp": "1754040268957" });
            let (id, receipt) = (format!("letter-{}", n % 2), format!("receipt-{n}"));
            let message = json!({ "MessageId": id, "ReceiptHandle": receipt, "Body": "m", "Attributes": attributes });
            Some((200, json!({ "Messages": [message] }).to_string()))
        }
        "AmazonSQS.ChangeMessageVisibilityBatch" => Some((200, json!({ "Successful": [], "Failed": [] }).to_string())),
        _ => None,
    });
    let listed = tokio::time::timeout(Duration::from_secs(20), queue.list(None, 100)).await.expect("an end").unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
}
