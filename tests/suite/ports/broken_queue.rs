//! The queue's contract notices adapters that break it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_engine::{Cause, Delivery, Depth, MessageId, Queue, QueueError, Settlement};
use sparks_tests::contract::{self, QueueRig};
use tokio::task::JoinSet;

use super::embedded::Folders;

/// What is wrong with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    DoesNotHideLeasedMessages,
    GivesTheNewestFirst,
    GivesMoreThanAskedFor,
    CutsBodies,
    KeepsDoneMessages,
    LosesRetries,
    RetriesAtOnce,
    LosesReasons,
    LosesDeadLetters,
    TakesRepeats,
    NeverCounts,
    SettlesLostLeases,
    DoesNotExtend,
    CallsEverythingWaiting,
}

struct Broken {
    inner: Arc<dyn Queue>,
    wrong: Wrong,
    sent: AtomicU64,
    leased: Mutex<Vec<Delivery>>,
}

impl Broken {
    fn over(inner: Arc<dyn Queue>, wrong: Wrong) -> Arc<dyn Queue> {
        Arc::new(Self { inner, wrong, sent: AtomicU64::new(0), leased: Mutex::default() })
    }
}

#[async_trait]
impl Queue for Broken {
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        let n = self.sent.fetch_add(1, Ordering::Relaxed);
        match self.wrong {
            Wrong::TakesRepeats => self.inner.send(body, &format!("{deduplication}/{n}")).await,
            Wrong::CutsBodies => self.inner.send(body.get(..1000).unwrap_or(body), deduplication).await,
            _ => self.inner.send(body, deduplication).await,
        }
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        let asked = if self.wrong == Wrong::GivesMoreThanAskedFor { most + 1 } else { most };
        let mut received = self.inner.receive(asked).await?;
        match self.wrong {
            Wrong::GivesTheNewestFirst => received.reverse(),
            Wrong::NeverCounts => received.iter_mut().for_each(|delivery| delivery.receives = 1),
            Wrong::DoesNotHideLeasedMessages => {
                let mut leased = self.leased.lock().unwrap();
                leased.extend(received.iter().cloned());
                // Once more each, or nobody would ever find the queue empty.
                if received.is_empty() {
                    received = leased.drain(..).take(most).collect();
                }
            }
            _ => {}
        }
        Ok(received)
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        if self.wrong == Wrong::DoesNotExtend { Ok(()) } else { self.inner.extend(delivery).await }
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let settlement = match (self.wrong, settlement) {
            (Wrong::KeepsDoneMessages, Settlement::Done) => return Ok(()),
            (Wrong::LosesRetries, Settlement::Retry(_)) => Settlement::Done,
            (Wrong::RetriesAtOnce, Settlement::Retry(_)) => Settlement::Retry(Duration::ZERO),
            (Wrong::LosesReasons, Settlement::DeadLetter { .. }) => {
                Settlement::DeadLetter { cause: Cause::Fault, reason: "failed".into() }
            }
            (Wrong::LosesDeadLetters, Settlement::DeadLetter { .. }) => Settlement::Done,
            (_, settlement) => settlement,
        };
        match self.inner.settle(delivery, settlement).await {
            Err(QueueError::LeaseLost(_)) if self.wrong == Wrong::SettlesLostLeases => Ok(()),
            settled => settled,
        }
    }

    async fn depth(&self) -> Result<Depth, QueueError> {
        let depth = self.inner.depth().await?;
        Ok(match self.wrong {
            Wrong::CallsEverythingWaiting => {
                Depth { waiting: depth.waiting + depth.leased + depth.delayed, leased: 0, delayed: 0, ..depth }
            }
            _ => depth,
        })
    }
}

/// Each fault with a check that must notice it.
const CAUGHT_BY: [(Wrong, &str); 14] = [
    (Wrong::DoesNotHideLeasedMessages, "a_lease_hides_the_message"),
    (Wrong::GivesTheNewestFirst, "the_oldest_comes_first"),
    (Wrong::GivesMoreThanAskedFor, "at_most_as_many_as_asked_for"),
    (Wrong::CutsBodies, "a_message_says_what_was_sent"),
    (Wrong::KeepsDoneMessages, "done_messages_are_gone"),
    (Wrong::LosesRetries, "a_retry_hides_the_message_for_a_while"),
    (Wrong::RetriesAtOnce, "a_retry_hides_the_message_for_a_while"),
    (Wrong::LosesReasons, "dead_letters_are_listed_with_their_reason"),
    (Wrong::LosesDeadLetters, "dead_letters_are_listed_with_their_reason"),
    (Wrong::TakesRepeats, "a_repeat_adds_nothing_until_the_first_is_settled"),
    (Wrong::NeverCounts, "receives_are_counted"),
    (Wrong::SettlesLostLeases, "an_expired_lease_is_lost_to_the_next"),
    (Wrong::DoesNotExtend, "an_extended_lease_holds"),
    (Wrong::CallsEverythingWaiting, "depth_tells_the_messages_apart"),
];

async fn failures(folders: Arc<Folders>, wrong: Wrong) -> Vec<&'static str> {
    let report = contract::queue(async |leases| {
        let QueueRig { queue, other, letters, visibility } = folders.queue(leases);
        QueueRig { queue: Broken::over(queue, wrong), other: Broken::over(other, wrong), letters, visibility }
    });
    report.await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_broken_queue_is_caught() {
    let folders = Arc::new(Folders::new());
    assert_eq!(failures(Arc::clone(&folders), Wrong::Nothing).await, [""; 0], "the decorator alone breaks it");
    let mut tasks = JoinSet::new();
    for (wrong, check) in CAUGHT_BY {
        let folders = Arc::clone(&folders);
        tasks.spawn(async move { (wrong, check, failures(folders, wrong).await) });
    }
    for (wrong, check, failures) in tasks.join_all().await {
        assert!(failures.contains(&check), "{check} does not notice a queue that {wrong:?}, only {failures:?}");
    }
}
