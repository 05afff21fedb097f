//! Mutation testing of the queue contract: each known defect of an adapter must fail a named check.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, DeadLetters, Delivery, MessageId, Queue, QueueDepth, QueueError, Settlement};
use sparks_tests::contract::{self, QueueFixture};
use tokio::task::JoinSet;

use super::data_folders::DataFolders;

/// A defect of a queue or of its dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    DeliversLeasedMessages,
    DeliversNewestFirst,
    DeliversMoreThanRequested,
    TruncatesBodies,
    IgnoresAcknowledgement,
    DropsRetries,
    IgnoresRetryDelay,
    DropsReasons,
    DropsDeadLetters,
    DeliversDuplicates,
    IgnoresReceiveCount,
    AcceptsLostLeases,
    IgnoresExtend,
    CountsAllAsWaiting,
    CountsDeferralsAsAttempts,
    CountsReleasesAsAttempts,
    IgnoresRetriesAsAttempts,
    IgnoresDeferDelay,
    ResendsDeferredMessages,
    DelaysReleases,
    ReportsNoOldest,
    ReportsStaleOldest,
    DropsCauses,
    ListsNewestDeadLetterFirst,
    SkipsDeadLetterAtPageEnd,
    DropsReceiveCount,
    DropsSendTime,
    FindsAnyDeadLetter,
    KeepsReplayedDeadLetter,
    ReplaysWithoutSending,
    ReplaysTruncatedBody,
    ReplaysMissingDeadLetter,
    IgnoresDiscard,
    IgnoresReleaseOfDeadLetters,
}

struct BrokenQueue {
    inner: Arc<dyn Queue>,
    defect: Defect,
    sent: AtomicU64,
    leased: Mutex<Vec<Delivery>>,
    oldest: Mutex<Option<Timestamp>>,
}

impl BrokenQueue {
    fn wrap(inner: Arc<dyn Queue>, defect: Defect) -> Arc<dyn Queue> {
        Arc::new(Self { inner, defect, sent: AtomicU64::new(0), leased: Mutex::default(), oldest: Mutex::default() })
    }
}

#[async_trait]
impl Queue for BrokenQueue {
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        let n = self.sent.fetch_add(1, Ordering::Relaxed);
        match self.defect {
            Defect::DeliversDuplicates => self.inner.send(body, &format!("{deduplication}/{n}")).await,
            Defect::TruncatesBodies => self.inner.send(body.get(..1000).unwrap_or(body), deduplication).await,
            _ => self.inner.send(body, deduplication).await,
        }
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        let asked = if self.defect == Defect::DeliversMoreThanRequested { most + 1 } else { most };
        let mut received = self.inner.receive(asked).await?;
        match self.defect {
            Defect::DeliversNewestFirst => received.reverse(),
            Defect::IgnoresReceiveCount => received.iter_mut().for_each(|delivery| delivery.receives = 1),
            Defect::DeliversLeasedMessages => {
                let mut leased = self.leased.lock().unwrap();
                leased.extend(received.iter().cloned());
                // Each once more only, or the queue would never be empty.
                if received.is_empty() {
                    received = leased.drain(..).take(most).collect();
                }
            }
            _ => {}
        }
        Ok(received)
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        if self.defect == Defect::IgnoresExtend { Ok(()) } else { self.inner.extend(delivery).await }
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let settlement = match (self.defect, settlement) {
            (Defect::IgnoresAcknowledgement, Settlement::Acknowledge) => return Ok(()),
            (Defect::DropsRetries, Settlement::Retry(_)) => Settlement::Acknowledge,
            (Defect::IgnoresRetryDelay, Settlement::Retry(_)) => Settlement::Retry(Duration::ZERO),
            (Defect::DropsReasons, Settlement::DeadLetter { .. }) => {
                Settlement::DeadLetter { cause: Cause::Fault, reason: "failed".into() }
            }
            (Defect::DropsDeadLetters, Settlement::DeadLetter { .. }) => Settlement::Acknowledge,
            (Defect::DropsCauses, Settlement::DeadLetter { reason, .. }) => {
                Settlement::DeadLetter { cause: Cause::Malformed, reason }
            }
            (Defect::CountsDeferralsAsAttempts, Settlement::Defer(after)) => Settlement::Retry(after),
            (Defect::IgnoresDeferDelay, Settlement::Defer(_)) => Settlement::Defer(Duration::ZERO),
            (Defect::CountsReleasesAsAttempts, Settlement::Release) => Settlement::Retry(Duration::ZERO),
            (Defect::DelaysReleases, Settlement::Release) => Settlement::Defer(Duration::from_secs(5)),
            (Defect::IgnoresRetriesAsAttempts, Settlement::Retry(after)) => Settlement::Defer(after),
            (Defect::ResendsDeferredMessages, Settlement::Defer(_)) => {
                let body = delivery.body.clone();
                self.inner.settle(delivery, Settlement::Acknowledge).await?;
                let n = self.sent.fetch_add(1, Ordering::Relaxed);
                return self.inner.send(&body, &format!("resent/{n}")).await.map(drop);
            }
            (_, settlement) => settlement,
        };
        match self.inner.settle(delivery, settlement).await {
            Err(QueueError::LeaseLost(_)) if self.defect == Defect::AcceptsLostLeases => Ok(()),
            settled => settled,
        }
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        let depth = self.inner.depth().await?;
        Ok(match self.defect {
            Defect::CountsAllAsWaiting => {
                QueueDepth { waiting: depth.waiting + depth.leased + depth.delayed, leased: 0, delayed: 0, ..depth }
            }
            Defect::ReportsNoOldest => QueueDepth { oldest: None, ..depth },
            Defect::ReportsStaleOldest => {
                let mut oldest = self.oldest.lock().unwrap();
                *oldest = oldest.or(depth.oldest);
                QueueDepth { oldest: *oldest, ..depth }
            }
            _ => depth,
        })
    }
}

/// Dead letters with a defect.
struct BrokenDeadLetters {
    inner: Arc<dyn DeadLetters>,
    queue: Arc<dyn Queue>,
    is_released: AtomicBool,
    defect: Defect,
}

impl BrokenDeadLetters {
    fn apply_defect(&self, mut letter: DeadLetter) -> DeadLetter {
        match self.defect {
            Defect::DropsReceiveCount => letter.receives = 1,
            Defect::DropsSendTime => letter.sent = letter.died,
            _ => {}
        }
        letter
    }
}

#[async_trait]
impl DeadLetters for BrokenDeadLetters {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let mut dead_letters = match self.defect {
            Defect::SkipsDeadLetterAtPageEnd if after.is_some() => {
                let more = self.inner.list(after, most.saturating_add(1)).await?;
                more.into_iter().skip(1).collect()
            }
            Defect::IgnoresReleaseOfDeadLetters if self.is_released.load(Ordering::Relaxed) => Vec::new(),
            _ => self.inner.list(after, most).await?,
        };
        if self.defect == Defect::ListsNewestDeadLetterFirst {
            dead_letters.reverse();
        }
        Ok(dead_letters.into_iter().map(|letter| self.apply_defect(letter)).collect())
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let found = self.inner.letter(id).await?;
        Ok(match self.defect {
            Defect::FindsAnyDeadLetter if found.is_none() => self.inner.list(None, 1).await?.pop(),
            _ => found.map(|letter| self.apply_defect(letter)),
        })
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let letter = self.inner.letter(id).await?;
        let resend = async |body: &str| self.queue.send(body, &format!("replay/{}", id.0)).await.map(Some);
        match (self.defect, letter) {
            (Defect::KeepsReplayedDeadLetter, Some(letter)) => resend(&letter.body).await,
            (Defect::ReplaysWithoutSending, Some(_)) => {
                self.inner.discard(id).await?;
                Ok(Some(id.clone()))
            }
            (Defect::ReplaysTruncatedBody, Some(letter)) => {
                self.inner.discard(id).await?;
                resend(&letter.body[..letter.body.len() / 4]).await
            }
            (Defect::ReplaysMissingDeadLetter, None) => Ok(Some(id.clone())),
            _ => self.inner.replay(id).await,
        }
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        if self.defect == Defect::IgnoresDiscard {
            return Ok(self.inner.letter(id).await?.is_some());
        }
        self.inner.discard(id).await
    }

    async fn lease_all(&self) -> Result<(), QueueError> {
        self.inner.lease_all().await
    }

    async fn release_all(&self) -> Result<(), QueueError> {
        self.is_released.store(true, Ordering::Relaxed);
        self.inner.release_all().await
    }
}

/// Each defect and the check that must fail.
const DETECTED_BY: [(Defect, &str); 35] = [
    (Defect::DeliversLeasedMessages, "a_leased_message_is_not_received_again"),
    (Defect::DeliversNewestFirst, "the_oldest_message_is_received_first"),
    (Defect::DeliversMoreThanRequested, "receive_returns_at_most_the_requested_number"),
    (Defect::TruncatesBodies, "a_message_keeps_its_body_and_id"),
    (Defect::IgnoresAcknowledgement, "an_acknowledged_message_is_removed"),
    (Defect::DropsRetries, "a_retry_delays_the_message"),
    (Defect::IgnoresRetryDelay, "a_retry_delays_the_message"),
    (Defect::DropsReasons, "dead_letters_are_listed_with_their_reason"),
    (Defect::DropsDeadLetters, "dead_letters_are_listed_with_their_reason"),
    (Defect::DeliversDuplicates, "a_duplicate_is_dropped_until_the_first_is_settled"),
    (Defect::IgnoresReceiveCount, "receives_are_counted"),
    (Defect::AcceptsLostLeases, "an_expired_lease_is_lost"),
    (Defect::IgnoresExtend, "an_extended_lease_stays_valid"),
    (Defect::CountsAllAsWaiting, "depth_counts_messages_by_state"),
    (Defect::CountsDeferralsAsAttempts, "only_retries_count_as_attempts"),
    (Defect::CountsReleasesAsAttempts, "only_retries_count_as_attempts"),
    (Defect::IgnoresRetriesAsAttempts, "only_retries_count_as_attempts"),
    (Defect::IgnoresDeferDelay, "a_deferral_delays_the_message"),
    (Defect::ResendsDeferredMessages, "a_message_keeps_its_send_time"),
    (Defect::DelaysReleases, "a_released_message_is_receivable_at_once"),
    (Defect::ReportsNoOldest, "depth_reports_the_oldest_waiting_message"),
    (Defect::ReportsStaleOldest, "depth_reports_the_oldest_waiting_message"),
    (Defect::AcceptsLostLeases, "settling_ends_the_lease"),
    (Defect::DropsCauses, "a_dead_letter_keeps_body_cause_reason_and_counts"),
    (Defect::DropsReceiveCount, "a_dead_letter_keeps_body_cause_reason_and_counts"),
    (Defect::DropsSendTime, "a_dead_letter_keeps_body_cause_reason_and_counts"),
    (Defect::ListsNewestDeadLetterFirst, "dead_letters_are_listed_in_any_page_size"),
    (Defect::SkipsDeadLetterAtPageEnd, "dead_letters_are_listed_in_any_page_size"),
    (Defect::FindsAnyDeadLetter, "a_dead_letter_is_found_by_id"),
    (Defect::KeepsReplayedDeadLetter, "a_replayed_dead_letter_is_sent_once_and_removed"),
    (Defect::ReplaysWithoutSending, "a_replayed_dead_letter_is_sent_once_and_removed"),
    (Defect::ReplaysTruncatedBody, "a_replayed_dead_letter_is_sent_once_and_removed"),
    (Defect::ReplaysMissingDeadLetter, "one_of_many_concurrent_replays_sends"),
    (Defect::IgnoresDiscard, "a_discarded_dead_letter_is_removed"),
    (Defect::IgnoresReleaseOfDeadLetters, "held_dead_letters_are_settled_and_released"),
];

async fn failures(folders: Arc<DataFolders>, defect: Defect) -> Vec<&'static str> {
    let report = contract::queue(async |lease_duration| {
        let QueueFixture { queue, other, dead_letters, visibility, capabilities } = folders.queue(lease_duration);
        let is_released = AtomicBool::default();
        let dead_letters =
            Arc::new(BrokenDeadLetters { inner: dead_letters, queue: Arc::clone(&queue), is_released, defect });
        let (queue, other) = (BrokenQueue::wrap(queue, defect), BrokenQueue::wrap(other, defect));
        QueueFixture { queue, other, dead_letters, visibility, capabilities }
    });
    report.await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_defect_in_a_queue_fails_a_check() {
    let folders = Arc::new(DataFolders::new());
    assert_eq!(failures(Arc::clone(&folders), Defect::None).await, [""; 0], "failures of an adapter without a defect");
    let mut tasks = JoinSet::new();
    for (defect, check) in DETECTED_BY {
        let folders = Arc::clone(&folders);
        tasks.spawn(async move { (defect, check, failures(folders, defect).await) });
    }
    for (defect, check, failures) in tasks.join_all().await {
        assert!(failures.contains(&check), "{check} passes with the defect {defect:?}; failed checks: {failures:?}");
    }
}
