//! Queues in SQS, standard and FIFO, keep the contract of the embedded one, but for what SQS cannot do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sparks_aws::{Queues, SqsQueue, Timing};
use sparks_engine::{Cause, DeadLetters, Depth, MessageId, Queue, Settlement};
use sparks_tests::{
    contract::{self, Abilities, Leases, QueueRig, Repeats},
    emulator::{self, Emulator},
    proxy::Proxy,
};
use tokio::task::JoinSet;

/// So many workers may die of a message.
const MANY: u32 = 25;
const FEW: u32 = 2;

async fn rig(emulator: &Emulator, queues: Queues, leases: Leases, max_deaths: u32) -> QueueRig {
    let connection = emulator.connect().await;
    let visibility = Duration::from_secs(match leases {
        Leases::Long => 60,
        Leases::Short => 2,
    });
    let timing = Timing { visibility, poll: Duration::ZERO };
    let queue = Arc::new(SqsQueue::new(&connection, queues.clone(), timing, max_deaths));
    let other = Arc::new(SqsQueue::new(&connection, queues, timing, max_deaths));
    let letters = Arc::clone(&queue) as Arc<dyn DeadLetters>;
    QueueRig { queue, other, letters, visibility, abilities: Abilities::NONE }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standard_queue_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let make = async |leases| rig(&emulator, emulator.queues(MANY).await, leases, MANY).await;
    contract::queue(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fifo_queue_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let make = async |leases| {
        let rig = rig(&emulator, emulator.fifo_queues(MANY).await, leases, MANY).await;
        QueueRig { abilities: Abilities { repeats: Repeats::ForAWhile, ..Abilities::NONE }, ..rig }
    };
    contract::queue(make).await.assert_passed();
}

/// The message kills a few workers, and is a letter then.
async fn kills(rig: &QueueRig, sent: &MessageId) {
    let mut receives = 0;
    // Nobody settles it: each worker died.
    while rig.queue.depth().await.unwrap().dead == 0 {
        receives += rig.queue.receive(1).await.unwrap().len();
        assert!(receives <= FEW as usize, "it was received {receives} times");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(receives, FEW as usize);
    let letters = rig.letters.list(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((&letters[0].id, letters[0].body.as_str(), letters[0].cause.as_str()), (sent, "deadly", "worker-died"));
    assert!(rig.letters.replay(&letters[0].id).await.unwrap().is_some());
    let delivery = rig.queue.receive(1).await.unwrap().remove(0);
    assert_eq!((delivery.body.as_str(), delivery.receives), ("deadly", 1));
}

/// What every worker died over is moved by the queue itself, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_letter_that_the_queue_moved_is_told_from_ours() {
    let emulator = Emulator::start().await;
    let rig = rig(&emulator, emulator.queues(FEW).await, Leases::Short, FEW).await;
    let sent = rig.queue.send("deadly", "d").await.unwrap();
    kills(&rig, &sent).await;
}

/// SQS moves nothing from the standard queue in which copies wait to the letters of a FIFO queue: whoever receives it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_waits_beside_a_fifo_queue_and_kills_workers_is_a_letter_as_well() {
    let emulator = Emulator::start().await;
    let rig = rig(&emulator, emulator.fifo_queues(FEW).await, Leases::Short, FEW).await;
    let sent = rig.queue.send("deadly", "d").await.unwrap();
    // However often it waits, nobody dies of that.
    for _ in 0..2 * FEW {
        let delivery = rig.queue.receive(1).await.unwrap().remove(0);
        assert_eq!(delivery.receives, 1);
        rig.queue.settle(delivery, Settlement::Wait(Duration::ZERO)).await.unwrap();
    }
    kills(&rig, &sent).await;
    assert_eq!(rig.queue.depth().await.unwrap(), Depth { leased: 1, ..Depth::default() }, "no copy is left over");
}

/// A batch may be done in parts: what failed is deleted once more, and only then is it done.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deletion_that_failed_in_a_batch_is_tried_again() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility: Duration::from_secs(60), poll: Duration::ZERO };
    let connection = emulator::connect(&proxy.endpoint()).await;
    let queue = Arc::new(SqsQueue::new(&connection, emulator.queues(MANY).await, timing, MANY));
    let failures = AtomicUsize::new(3);
    proxy.judge(move |target, body| {
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
    proxy.take_seen();
    let mut settling = JoinSet::new();
    for delivery in received {
        let queue = Arc::clone(&queue);
        settling.spawn(async move { queue.settle(delivery, Settlement::Done).await });
    }
    settling.join_all().await.into_iter().for_each(|settled| settled.unwrap());
    assert_eq!(queue.depth().await.unwrap(), Depth::default());
    let requests = proxy.take_seen().iter().filter(|target| target.ends_with("DeleteMessageBatch")).count();
    assert!((4..12).contains(&requests), "{requests} requests for 12 messages, of which three failed");
}

/// Puts so many letters into the queue.
async fn bury(queue: &SqsQueue, letters: usize) {
    for n in 0..letters {
        queue.send("m", &n.to_string()).await.unwrap();
    }
    let mut buried = 0;
    while buried < letters {
        for delivery in queue.receive(10).await.unwrap() {
            let (cause, reason) = (Cause::Fault, "it happens".to_owned());
            queue.settle(delivery, Settlement::DeadLetter { cause, reason }).await.unwrap();
            buried += 1;
        }
    }
}

/// Whoever goes through the letters reads them once, however many there are and whatever is done to each.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_letters_are_read_once_and_replayed_from_the_hand() {
    const LETTERS: usize = 35;
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility: Duration::from_secs(60), poll: Duration::ZERO };
    let (queues, connection) = (emulator.queues(MANY).await, emulator::connect(&proxy.endpoint()).await);
    let queue = SqsQueue::new(&connection, queues.clone(), timing, MANY);
    bury(&queue, LETTERS).await;
    proxy.take_seen();
    queue.hold().await.unwrap();
    let (mut letters, mut after) = (0, None);
    loop {
        let page = queue.list(after.as_ref(), 10).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for letter in &page {
            match letters % 3 {
                0 => assert!(queue.replay(&letter.id).await.unwrap().is_some()),
                1 => assert!(queue.discard(&letter.id).await.unwrap()),
                _ => {}
            }
            letters += 1;
        }
    }
    queue.give_back().await.unwrap();
    assert_eq!(letters, LETTERS);
    let reads = proxy.take_seen().iter().filter(|target| target.ends_with("ReceiveMessage")).count();
    assert!(reads <= LETTERS / 10 + 3, "{reads} requests to read {LETTERS} letters");
    let other = SqsQueue::new(&emulator.connect().await, queues, timing, MANY);
    assert_eq!(other.list(None, 100).await.unwrap().len(), LETTERS / 3, "what is left is there for others");
}

/// Leases that run out before all letters are read bring the first ones again: that is the end of reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn letters_that_come_again_while_they_are_read_are_read_once() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let timing = Timing { visibility: Duration::from_secs(60), poll: Duration::ZERO };
    let connection = emulator::connect(&proxy.endpoint()).await;
    let queue = SqsQueue::new(&connection, emulator.queues(MANY).await, timing, MANY);
    let receives = AtomicUsize::new(0);
    proxy.judge(move |target, _| match target {
        "AmazonSQS.ReceiveMessage" => {
            // Two letters in turns, each time by another receipt.
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
