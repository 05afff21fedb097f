//! The queue's contract notices adapters that break it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, DeadLetters, Delivery, Depth, MessageId, Queue, QueueError, Settlement};
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
    CountsWaits,
    CountsReleases,
    NeverCountsFailures,
    WaitsNotAtAll,
    SendsAnewToWait,
    PutsReleasesOff,
    NamesNoOldest,
    NamesTheOldestEver,
    LosesCauses,
    ListsTheLastLetterFirst,
    SkipsALetterAtPageEnds,
    ForgetsTheCount,
    ForgetsWhenItWasSent,
    FindsAnyLetter,
    ReplaysAndKeeps,
    ReplaysIntoNowhere,
    ReplaysHalfOfIt,
    ReplaysTwice,
    DiscardsNothing,
    GivesNothingBack,
}

struct Broken {
    inner: Arc<dyn Queue>,
    wrong: Wrong,
    sent: AtomicU64,
    leased: Mutex<Vec<Delivery>>,
    oldest: Mutex<Option<Timestamp>>,
}

impl Broken {
    fn over(inner: Arc<dyn Queue>, wrong: Wrong) -> Arc<dyn Queue> {
        Arc::new(Self { inner, wrong, sent: AtomicU64::new(0), leased: Mutex::default(), oldest: Mutex::default() })
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
            (Wrong::LosesCauses, Settlement::DeadLetter { reason, .. }) => {
                Settlement::DeadLetter { cause: Cause::Malformed, reason }
            }
            (Wrong::CountsWaits, Settlement::Wait(after)) => Settlement::Retry(after),
            (Wrong::WaitsNotAtAll, Settlement::Wait(_)) => Settlement::Wait(Duration::ZERO),
            (Wrong::CountsReleases, Settlement::Release) => Settlement::Retry(Duration::ZERO),
            (Wrong::PutsReleasesOff, Settlement::Release) => Settlement::Wait(Duration::from_secs(5)),
            (Wrong::NeverCountsFailures, Settlement::Retry(after)) => Settlement::Wait(after),
            (Wrong::SendsAnewToWait, Settlement::Wait(_)) => {
                let body = delivery.body.clone();
                self.inner.settle(delivery, Settlement::Done).await?;
                let n = self.sent.fetch_add(1, Ordering::Relaxed);
                return self.inner.send(&body, &format!("anew/{n}")).await.map(drop);
            }
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
            Wrong::NamesNoOldest => Depth { oldest: None, ..depth },
            Wrong::NamesTheOldestEver => {
                let mut oldest = self.oldest.lock().unwrap();
                *oldest = oldest.or(depth.oldest);
                Depth { oldest: *oldest, ..depth }
            }
            _ => depth,
        })
    }
}

/// Dead letters with something wrong.
struct BrokenLetters {
    inner: Arc<dyn DeadLetters>,
    queue: Arc<dyn Queue>,
    given_back: AtomicBool,
    wrong: Wrong,
}

impl BrokenLetters {
    fn spoil(&self, mut letter: DeadLetter) -> DeadLetter {
        match self.wrong {
            Wrong::ForgetsTheCount => letter.receives = 1,
            Wrong::ForgetsWhenItWasSent => letter.sent = letter.died,
            _ => {}
        }
        letter
    }
}

#[async_trait]
impl DeadLetters for BrokenLetters {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let mut letters = match self.wrong {
            Wrong::SkipsALetterAtPageEnds if after.is_some() => {
                let more = self.inner.list(after, most.saturating_add(1)).await?;
                more.into_iter().skip(1).collect()
            }
            Wrong::GivesNothingBack if self.given_back.load(Ordering::Relaxed) => Vec::new(),
            _ => self.inner.list(after, most).await?,
        };
        if self.wrong == Wrong::ListsTheLastLetterFirst {
            letters.reverse();
        }
        Ok(letters.into_iter().map(|letter| self.spoil(letter)).collect())
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let found = self.inner.letter(id).await?;
        Ok(match self.wrong {
            Wrong::FindsAnyLetter if found.is_none() => self.inner.list(None, 1).await?.pop(),
            _ => found.map(|letter| self.spoil(letter)),
        })
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let letter = self.inner.letter(id).await?;
        let resend = async |body: &str| self.queue.send(body, &format!("replay/{}", id.0)).await.map(Some);
        match (self.wrong, letter) {
            (Wrong::ReplaysAndKeeps, Some(letter)) => resend(&letter.body).await,
            (Wrong::ReplaysIntoNowhere, Some(_)) => {
                self.inner.discard(id).await?;
                Ok(Some(id.clone()))
            }
            (Wrong::ReplaysHalfOfIt, Some(letter)) => {
                self.inner.discard(id).await?;
                resend(&letter.body[..letter.body.len() / 4]).await
            }
            (Wrong::ReplaysTwice, None) => Ok(Some(id.clone())),
            _ => self.inner.replay(id).await,
        }
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        if self.wrong == Wrong::DiscardsNothing {
            return Ok(self.inner.letter(id).await?.is_some());
        }
        self.inner.discard(id).await
    }

    async fn hold(&self) -> Result<(), QueueError> {
        self.inner.hold().await
    }

    async fn give_back(&self) -> Result<(), QueueError> {
        self.given_back.store(true, Ordering::Relaxed);
        self.inner.give_back().await
    }
}

/// Each fault with a check that must notice it.
const CAUGHT_BY: [(Wrong, &str); 35] = [
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
    (Wrong::CountsWaits, "waiting_is_no_attempt_and_failing_is"),
    (Wrong::CountsReleases, "waiting_is_no_attempt_and_failing_is"),
    (Wrong::NeverCountsFailures, "waiting_is_no_attempt_and_failing_is"),
    (Wrong::WaitsNotAtAll, "a_wait_hides_the_message_for_a_while"),
    (Wrong::SendsAnewToWait, "a_message_keeps_the_time_it_was_sent"),
    (Wrong::PutsReleasesOff, "a_released_message_is_there_for_others_at_once"),
    (Wrong::NamesNoOldest, "depth_tells_since_when_the_oldest_waits"),
    (Wrong::NamesTheOldestEver, "depth_tells_since_when_the_oldest_waits"),
    (Wrong::SettlesLostLeases, "a_lease_that_was_given_back_is_lost"),
    (Wrong::LosesCauses, "a_letter_says_all_about_its_message"),
    (Wrong::ForgetsTheCount, "a_letter_says_all_about_its_message"),
    (Wrong::ForgetsWhenItWasSent, "a_letter_says_all_about_its_message"),
    (Wrong::ListsTheLastLetterFirst, "letters_are_listed_in_pages_of_any_size"),
    (Wrong::SkipsALetterAtPageEnds, "letters_are_listed_in_pages_of_any_size"),
    (Wrong::FindsAnyLetter, "a_letter_is_found_by_its_name"),
    (Wrong::ReplaysAndKeeps, "a_replayed_letter_is_sent_and_then_gone"),
    (Wrong::ReplaysIntoNowhere, "a_replayed_letter_is_sent_and_then_gone"),
    (Wrong::ReplaysHalfOfIt, "a_replayed_letter_is_sent_and_then_gone"),
    (Wrong::ReplaysTwice, "of_many_who_replay_a_letter_one_does"),
    (Wrong::DiscardsNothing, "a_discarded_letter_is_gone_for_good"),
    (Wrong::GivesNothingBack, "letters_at_hand_are_acted_on_and_given_back"),
];

async fn failures(folders: Arc<Folders>, wrong: Wrong) -> Vec<&'static str> {
    let report = contract::queue(async |leases| {
        let QueueRig { queue, other, letters, visibility, abilities } = folders.queue(leases);
        let given_back = AtomicBool::default();
        let letters = Arc::new(BrokenLetters { inner: letters, queue: Arc::clone(&queue), given_back, wrong });
        let (queue, other) = (Broken::over(queue, wrong), Broken::over(other, wrong));
        QueueRig { queue, other, letters, visibility, abilities }
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
