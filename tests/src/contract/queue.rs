//! The contract of the [`Queue`] and [`DeadLetters`] ports.

mod dead_letters;
mod returned_messages;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_engine::{Cause, DeadLetters, Delivery, Queue, QueueDepth, QueueError, Settlement};
use tokio::{task::JoinSet, time::sleep};

use super::{CheckResult, Report, checks, ensure, ensure_eq, run};

/// A queue, as two workers see it, and its dead letters.
#[derive(Clone)]
pub struct QueueFixture {
    /// The queue of one worker.
    pub queue: Arc<dyn Queue>,
    /// The same queue, opened by another worker.
    pub other: Arc<dyn Queue>,
    /// The dead letters of the queue.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// The visibility timeout.
    pub visibility: Duration,
    /// What this queue can do beyond the common contract.
    pub capabilities: QueueCapabilities,
}

/// Behaviour in which queues differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCapabilities {
    /// How duplicates are dropped.
    pub deduplication: Deduplication,
    /// Depth counts delayed retries separately from leased messages.
    pub reports_delayed: bool,
    /// Depth reports the age of the oldest waiting message.
    pub reports_oldest: bool,
}

/// How a queue drops messages with a deduplication ID that it has seen. Duplicates that are delivered are harmless: processing is
/// idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deduplication {
    /// Duplicates are dropped until the first message is settled.
    UntilSettled,
    /// Duplicates are dropped for some minutes, settled or not (SQS FIFO).
    TimeWindow,
    /// Duplicates are delivered (SQS standard).
    None,
}

impl QueueCapabilities {
    /// The embedded queue.
    pub const ALL: Self =
        Self { deduplication: Deduplication::UntilSettled, reports_delayed: true, reports_oldest: true };
    /// An SQS standard queue.
    pub const NONE: Self = Self { deduplication: Deduplication::None, reports_delayed: false, reports_oldest: false };
}

/// The visibility timeout that a check needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseDuration {
    /// A minute, longer than any check takes.
    Long,
    /// As short as the queue supports; a check waits for several of them.
    Short,
}

/// The time limit for a message to arrive.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest delay that every queue supports.
const DELAY: Duration = Duration::from_secs(1);

/// The tolerance between clocks with millisecond resolution.
const TICK: Duration = Duration::from_millis(2);

/// Runs the suite. `make` returns an empty queue with this visibility timeout.
pub async fn queue<Fut>(make: impl Fn(LeaseDuration) -> Fut) -> Report
where
    Fut: Future<Output = QueueFixture>,
{
    use super::queue as suite;
    let long = checks![suite::{
        the_oldest_message_is_received_first,
        receive_returns_at_most_the_requested_number,
        a_message_keeps_its_body_and_id,
        a_leased_message_is_not_received_again,
        concurrent_receivers_get_different_messages,
        an_acknowledged_message_is_removed,
        a_retry_delays_the_message,
        dead_letters_are_listed_with_their_reason,
        a_duplicate_is_dropped_until_the_first_is_settled,
        receives_are_counted,
        depth_counts_messages_by_state,
    }, returned_messages::{
        only_retries_count_as_attempts,
        a_deferral_delays_the_message,
        a_message_keeps_its_send_time,
        a_released_message_is_receivable_at_once,
        settling_ends_the_lease,
        depth_reports_the_oldest_waiting_message,
    }, dead_letters::{
        a_dead_letter_keeps_body_cause_reason_and_counts,
        dead_letters_are_listed_in_any_page_size,
        a_dead_letter_is_found_by_id,
        a_replayed_dead_letter_is_sent_once_and_removed,
        a_replay_beside_a_duplicate_adds_no_message,
        one_of_many_concurrent_replays_sends,
        a_discarded_dead_letter_is_removed,
        held_dead_letters_are_settled_and_released,
    }];
    let short = checks![suite::{
        an_expired_lease_is_lost,
        an_extended_lease_stays_valid,
    }];
    let (long, short) =
        tokio::join!(run(long, || make(LeaseDuration::Long)), run(short, || make(LeaseDuration::Short)));
    Report { results: long.results.into_iter().chain(short.results).collect() }
}

/// Receives one message, waiting until there is one.
async fn receive_one(queue: &dyn Queue) -> CheckResult<Delivery> {
    let started = Instant::now();
    while started.elapsed() < TIMEOUT {
        if let Some(delivery) = queue.receive(1).await?.pop() {
            return Ok(delivery);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(format!("no message received within {TIMEOUT:?}").into())
}

async fn ensure_empty(queue: &dyn Queue, when: &str) -> CheckResult {
    let received = queue.receive(10).await?;
    ensure!(received.is_empty(), "{when}, the queue delivers {received:?}");
    Ok(())
}

/// Returns a dead-letter settlement with this reason.
fn dead_letter(reason: &str) -> Settlement {
    Settlement::DeadLetter { cause: Cause::Fault, reason: reason.to_owned() }
}

async fn the_oldest_message_is_received_first(fixture: QueueFixture) -> CheckResult {
    for n in 0..7 {
        fixture.queue.send(&format!("m{n}"), &format!("d{n}")).await?;
    }
    let mut bodies = Vec::new();
    for most in [1, 3, 10] {
        bodies.extend(fixture.queue.receive(most).await?.into_iter().map(|delivery| delivery.body));
    }
    ensure_eq!(bodies, (0..7).map(|n| format!("m{n}")).collect::<Vec<_>>(), "messages in order of delivery");
    Ok(())
}

async fn receive_returns_at_most_the_requested_number(fixture: QueueFixture) -> CheckResult {
    for n in 0..5 {
        fixture.queue.send("m", &format!("d{n}")).await?;
    }
    for most in [2, 1] {
        let received = fixture.queue.receive(most).await?.len();
        ensure!((1..=most).contains(&received), "{received} messages received, at most {most} requested");
    }
    Ok(())
}

async fn a_message_keeps_its_body_and_id(fixture: QueueFixture) -> CheckResult {
    let body = format!("{{\"key\":\"ümläut \u{1F600} \\\" \\n\",\"long\":\"{}\"}}", "x".repeat(60_000));
    let id = fixture.queue.send(&body, "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure!(delivery.body == body, "the body is not what was sent");
    ensure_eq!(delivery.id, id, "the ID of the message");
    Ok(())
}

async fn a_leased_message_is_not_received_again(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_empty(fixture.queue.as_ref(), "while the message is leased").await?;
    ensure_empty(fixture.other.as_ref(), "while another worker has leased the message").await?;
    fixture.queue.extend(&delivery).await?;
    let stolen = fixture.other.extend(&Delivery { receipt: "another lease".into(), ..delivery.clone() }).await;
    ensure!(matches!(stolen, Err(QueueError::LeaseLost(_))), "extending with a foreign receipt returns {stolen:?}");
    Ok(())
}

async fn concurrent_receivers_get_different_messages(fixture: QueueFixture) -> CheckResult {
    for n in 0..40 {
        fixture.queue.send(&format!("m{n:02}"), &format!("d{n}")).await?;
    }
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let queue = Arc::clone(if n % 2 == 0 { &fixture.queue } else { &fixture.other });
        tasks.spawn(async move {
            let mut bodies = Vec::new();
            loop {
                let received = queue.receive(3).await?;
                if received.is_empty() {
                    return CheckResult::Ok(bodies);
                }
                bodies.extend(received.into_iter().map(|delivery| delivery.body));
            }
        });
    }
    let bodies: CheckResult<Vec<Vec<String>>> = tasks.join_all().await.into_iter().collect();
    let mut bodies = bodies?.concat();
    bodies.sort_unstable();
    ensure_eq!(bodies, (0..40).map(|n| format!("m{n:02}")).collect::<Vec<_>>(), "messages received by eight workers");
    Ok(())
}

async fn an_acknowledged_message_is_removed(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    fixture.queue.settle(delivery.clone(), Settlement::Acknowledge).await?;
    ensure_empty(fixture.queue.as_ref(), "after the message was acknowledged").await?;
    ensure_eq!(fixture.queue.depth().await?, QueueDepth::default(), "the depth after the message was acknowledged");
    let again = fixture.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await;
    ensure!(matches!(again, Err(QueueError::LeaseLost(_))), "settling twice returns {again:?}");
    ensure_empty(fixture.queue.as_ref(), "after the message was settled twice").await
}

async fn a_retry_delays_the_message(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("late", "d0").await?;
    fixture.queue.send("soon", "d1").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!(delivery.body, "late", "the first message");
    let settled = Instant::now();
    fixture.queue.settle(delivery, Settlement::Retry(DELAY)).await?;
    let soon = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!(soon.body, "soon", "the next message while the first is delayed");
    let late = receive_one(fixture.other.as_ref()).await?;
    ensure_eq!(late.body, "late", "the delayed message");
    let took = settled.elapsed();
    ensure!(took + TICK >= DELAY, "a message delayed by {DELAY:?} was delivered after {took:?}");
    Ok(())
}

async fn dead_letters_are_listed_with_their_reason(fixture: QueueFixture) -> CheckResult {
    ensure!(fixture.dead_letters.list(None, 100).await?.is_empty(), "there are dead letters before any message");
    for n in 0..2 {
        let body = format!("m{n}");
        let id = fixture.queue.send(&body, &format!("d{n}")).await?;
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        let reason = format!("reason {n}");
        fixture.queue.settle(delivery, dead_letter(&reason)).await?;
        let letters = fixture.dead_letters.list(None, 100).await?;
        ensure_eq!(letters.len(), n + 1, "the number of dead letters");
        let letter = &letters[n];
        ensure_eq!((&letter.id, &letter.body), (&id, &body), "the dead letter");
        ensure_eq!(
            (letter.reason.as_str(), letter.receives),
            (reason.as_str(), 1),
            "reason and receive count of the dead letter"
        );
    }
    ensure_empty(fixture.queue.as_ref(), "after the messages were dead-lettered").await?;
    let name = if fixture.capabilities.deduplication == Deduplication::TimeWindow { "d0 again" } else { "d0" };
    let again = fixture.queue.send("m0", name).await?;
    ensure_eq!(receive_one(fixture.queue.as_ref()).await?.id, again, "a message sent again after it was dead-lettered");
    Ok(())
}

async fn a_duplicate_is_dropped_until_the_first_is_settled(fixture: QueueFixture) -> CheckResult {
    let first = fixture.queue.send("m", "d").await?;
    if fixture.capabilities.deduplication != Deduplication::UntilSettled {
        return a_duplicate_may_be_delivered(fixture).await;
    }
    ensure_eq!(fixture.other.send("m", "d").await?, first, "the ID of a duplicate");
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!(fixture.queue.send("m", "d").await?, first, "the ID of a duplicate while the first is leased");
    ensure_empty(fixture.queue.as_ref(), "after a duplicate of a leased message").await?;
    fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
    let second = fixture.queue.send("m", "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!((&delivery.id, delivery.receives), (&second, 1), "the message sent after the first was acknowledged");
    ensure!(second != first, "a new message has the ID of an acknowledged one");
    Ok(())
}

/// A queue that does not drop duplicates delivers each, and settling one does not remove the other.
async fn a_duplicate_may_be_delivered(fixture: QueueFixture) -> CheckResult {
    fixture.other.send("m", "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!((delivery.body.as_str(), delivery.receives), ("m", 1), "the first of two duplicates");
    fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
    while let Some(delivery) = fixture.queue.receive(1).await?.pop() {
        ensure_eq!((delivery.body.as_str(), delivery.receives), ("m", 1), "the duplicate");
        fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
    }
    ensure_eq!(fixture.queue.depth().await?, QueueDepth::default(), "the depth after all messages were acknowledged");
    Ok(())
}

async fn receives_are_counted(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    for expected in 1..=4 {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        ensure_eq!(delivery.receives, expected, "the receive count");
        fixture.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await?;
    }
    Ok(())
}

async fn depth_counts_messages_by_state(fixture: QueueFixture) -> CheckResult {
    for n in 0..10 {
        fixture.queue.send("m", &format!("d{n}")).await?;
    }
    let settlements = [Settlement::Acknowledge, Settlement::Retry(TIMEOUT * 6), Settlement::Retry(TIMEOUT * 6)];
    for settlement in settlements.into_iter().chain([dead_letter("r")]) {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        fixture.queue.settle(delivery, settlement).await?;
    }
    for _ in 0..2 {
        receive_one(fixture.other.as_ref()).await?;
    }
    let mut depth = fixture.queue.depth().await?;
    if !fixture.capabilities.reports_delayed {
        (depth.leased, depth.delayed) = (depth.leased.saturating_sub(2), depth.delayed + 2);
    }
    let expected = QueueDepth { waiting: 4, leased: 2, delayed: 2, dead: 1, oldest: depth.oldest };
    ensure_eq!(depth, expected, "the depth");
    Ok(())
}

async fn an_expired_lease_is_lost(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let received = Instant::now();
    let first = receive_one(fixture.queue.as_ref()).await?;
    let second = receive_one(fixture.other.as_ref()).await?;
    ensure!(received.elapsed() + TICK >= fixture.visibility, "the lease expired after {:?}", received.elapsed());
    ensure_eq!((&second.id, second.receives), (&first.id, 2), "the message after its lease expired");
    let late = fixture.queue.extend(&first).await;
    ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "extending a lost lease returns {late:?}");
    for settlement in [Settlement::Acknowledge, dead_letter("late")] {
        let late = fixture.queue.settle(first.clone(), settlement).await;
        ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "settling a lost lease returns {late:?}");
    }
    ensure!(fixture.dead_letters.list(None, 100).await?.is_empty(), "a lost lease made a dead letter");
    // A worker that receives the message again loses its old lease too.
    let third = receive_one(fixture.other.as_ref()).await?;
    let late = fixture.other.settle(second, Settlement::Acknowledge).await;
    ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "settling the worker's own lost lease returns {late:?}");
    fixture.other.settle(third, Settlement::Acknowledge).await?;
    ensure_empty(fixture.queue.as_ref(), "after the message was acknowledged").await
}

async fn an_extended_lease_stays_valid(fixture: QueueFixture) -> CheckResult {
    // A machine that stalls for longer than the lease makes the result meaningless, so the check starts over.
    'stalled: for n in 0..5 {
        fixture.queue.send("m", &format!("d{n}")).await?;
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        let started = Instant::now();
        while started.elapsed() < fixture.visibility.mul_f32(2.5) {
            let extended = Instant::now();
            let extension = fixture.queue.extend(&delivery).await;
            sleep(fixture.visibility / 4).await;
            let stolen = fixture.other.receive(1).await?.pop();
            if extended.elapsed() >= fixture.visibility / 2 {
                if let Some(delivery) = stolen {
                    fixture.other.settle(delivery, Settlement::Acknowledge).await?;
                }
                let _ = fixture.queue.settle(delivery, Settlement::Acknowledge).await;
                continue 'stalled;
            }
            extension?;
            ensure!(stolen.is_none(), "a message with an extended lease was delivered to another worker");
        }
        fixture.queue.settle(delivery, Settlement::Acknowledge).await?;
        return Ok(());
    }
    Err("the machine stalled in all five attempts".into())
}
