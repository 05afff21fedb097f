//! What a queue promises, and whoever keeps its dead letters.

mod letters;
mod pauses;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_engine::{Cause, DeadLetters, Delivery, Depth, Queue, QueueError, Settlement};
use tokio::{task::JoinSet, time::sleep};

use super::{Checked, Report, checks, ensure, ensure_eq, run};

/// A queue as its users see it.
#[derive(Clone)]
pub struct QueueRig {
    /// One worker's view.
    pub queue: Arc<dyn Queue>,
    /// Another worker's view of the same queue.
    pub other: Arc<dyn Queue>,
    /// Its dead letters.
    pub letters: Arc<dyn DeadLetters>,
    /// How long a lease lasts that nobody extends.
    pub visibility: Duration,
    /// What it can do beyond what every queue can.
    pub abilities: Abilities,
}

/// What some queues can do, and others cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// What it knows of repeats.
    pub repeats: Repeats,
    /// Tells what was put off after a failure from what somebody has.
    pub tells_what_is_put_off: bool,
    /// Tells since when the oldest message waits.
    pub tells_the_oldest: bool,
}

/// What a queue knows of repeats. Whatever it is, they are harmless: what they ask for is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// They add nothing until the first is settled.
    UntilSettled,
    /// They add nothing for some minutes, settled or not.
    ForAWhile,
    /// They are messages like any other.
    Never,
}

impl Abilities {
    /// All of them.
    pub const ALL: Self = Self { repeats: Repeats::UntilSettled, tells_what_is_put_off: true, tells_the_oldest: true };
    /// None of them.
    pub const NONE: Self = Self { repeats: Repeats::Never, tells_what_is_put_off: false, tells_the_oldest: false };
}

/// How long leases shall last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leases {
    /// Longer than any check takes: a minute.
    Long,
    /// As short as the queue can make them; a check waits for several of them to end.
    Short,
}

/// Nothing that is meant to happen takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The shortest time for which every queue can put a message off.
const DELAY: Duration = Duration::from_secs(1);

/// Clocks that count milliseconds may differ by two.
const TICK: Duration = Duration::from_millis(2);

/// Tries a queue. Each check gets one that is empty.
pub async fn queue<Fut>(make: impl Fn(Leases) -> Fut) -> Report
where
    Fut: Future<Output = QueueRig>,
{
    use super::queue as promises;
    let long = checks![promises::{
        the_oldest_comes_first,
        at_most_as_many_as_asked_for,
        a_message_says_what_was_sent,
        a_lease_hides_the_message,
        of_many_who_receive_each_message_reaches_one,
        done_messages_are_gone,
        a_retry_hides_the_message_for_a_while,
        dead_letters_are_listed_with_their_reason,
        a_repeat_adds_nothing_until_the_first_is_settled,
        receives_are_counted,
        depth_tells_the_messages_apart,
    }, pauses::{
        waiting_is_no_attempt_and_failing_is,
        a_wait_hides_the_message_for_a_while,
        a_message_keeps_the_time_it_was_sent,
        a_released_message_is_there_for_others_at_once,
        a_lease_that_was_given_back_is_lost,
        depth_tells_since_when_the_oldest_waits,
    }, letters::{
        a_letter_says_all_about_its_message,
        letters_are_listed_in_pages_of_any_size,
        a_letter_is_found_by_its_name,
        a_replayed_letter_is_sent_and_then_gone,
        a_replay_beside_a_repeat_adds_nothing,
        of_many_who_replay_a_letter_one_does,
        a_discarded_letter_is_gone_for_good,
        letters_at_hand_are_acted_on_and_given_back,
    }];
    let short = checks![promises::{
        an_expired_lease_is_lost_to_the_next,
        an_extended_lease_holds,
    }];
    let (long, short) = tokio::join!(run(long, || make(Leases::Long)), run(short, || make(Leases::Short)));
    Report { results: long.results.into_iter().chain(short.results).collect() }
}

/// Waits until there is something to receive.
async fn next(queue: &dyn Queue) -> Checked<Delivery> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(delivery) = queue.receive(1).await?.pop() {
            return Ok(delivery);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(format!("nothing to receive in {PATIENCE:?}").into())
}

async fn is_empty(queue: &dyn Queue, when: &str) -> Checked {
    let received = queue.receive(10).await?;
    ensure!(received.is_empty(), "{when} there is {received:?}");
    Ok(())
}

/// Nobody shall try again, for this reason.
fn dead(reason: &str) -> Settlement {
    Settlement::DeadLetter { cause: Cause::Fault, reason: reason.to_owned() }
}

async fn the_oldest_comes_first(rig: QueueRig) -> Checked {
    for n in 0..7 {
        rig.queue.send(&format!("m{n}"), &format!("d{n}")).await?;
    }
    let mut bodies = Vec::new();
    for most in [1, 3, 10] {
        bodies.extend(rig.queue.receive(most).await?.into_iter().map(|delivery| delivery.body));
    }
    ensure_eq!(bodies, (0..7).map(|n| format!("m{n}")).collect::<Vec<_>>(), "the messages");
    Ok(())
}

async fn at_most_as_many_as_asked_for(rig: QueueRig) -> Checked {
    for n in 0..5 {
        rig.queue.send("m", &format!("d{n}")).await?;
    }
    for most in [2, 1] {
        let received = rig.queue.receive(most).await?.len();
        ensure!((1..=most).contains(&received), "{received} messages instead of at most {most}");
    }
    Ok(())
}

async fn a_message_says_what_was_sent(rig: QueueRig) -> Checked {
    let body = format!("{{\"key\":\"ümläut \u{1F600} \\\" \\n\",\"long\":\"{}\"}}", "x".repeat(60_000));
    let id = rig.queue.send(&body, "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    ensure!(delivery.body == body, "the body is not what was sent");
    ensure_eq!(delivery.id, id, "the name of the message");
    Ok(())
}

async fn a_lease_hides_the_message(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    is_empty(rig.queue.as_ref(), "while the message is leased").await?;
    is_empty(rig.other.as_ref(), "while another has the message").await?;
    rig.queue.extend(&delivery).await?;
    let stolen = rig.other.extend(&Delivery { receipt: "somebody else's".into(), ..delivery.clone() }).await;
    ensure!(matches!(stolen, Err(QueueError::LeaseLost(_))), "extending another's lease gives {stolen:?}");
    Ok(())
}

async fn of_many_who_receive_each_message_reaches_one(rig: QueueRig) -> Checked {
    for n in 0..40 {
        rig.queue.send(&format!("m{n:02}"), &format!("d{n}")).await?;
    }
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let queue = Arc::clone(if n % 2 == 0 { &rig.queue } else { &rig.other });
        tasks.spawn(async move {
            let mut bodies = Vec::new();
            loop {
                let received = queue.receive(3).await?;
                if received.is_empty() {
                    return Checked::Ok(bodies);
                }
                bodies.extend(received.into_iter().map(|delivery| delivery.body));
            }
        });
    }
    let bodies: Checked<Vec<Vec<String>>> = tasks.join_all().await.into_iter().collect();
    let mut bodies = bodies?.concat();
    bodies.sort_unstable();
    ensure_eq!(bodies, (0..40).map(|n| format!("m{n:02}")).collect::<Vec<_>>(), "what eight workers received");
    Ok(())
}

async fn done_messages_are_gone(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    rig.queue.settle(delivery.clone(), Settlement::Done).await?;
    is_empty(rig.queue.as_ref(), "after the message is done").await?;
    ensure_eq!(rig.queue.depth().await?, Depth::default(), "the depth after the message is done");
    let again = rig.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await;
    ensure!(matches!(again, Err(QueueError::LeaseLost(_))), "settling twice gives {again:?}");
    is_empty(rig.queue.as_ref(), "after the message is settled twice").await
}

async fn a_retry_hides_the_message_for_a_while(rig: QueueRig) -> Checked {
    rig.queue.send("late", "d0").await?;
    rig.queue.send("soon", "d1").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    ensure_eq!(delivery.body, "late", "the first message");
    let settled = Instant::now();
    rig.queue.settle(delivery, Settlement::Retry(DELAY)).await?;
    let soon = next(rig.queue.as_ref()).await?;
    ensure_eq!(soon.body, "soon", "the next message while the first is put off");
    let late = next(rig.other.as_ref()).await?;
    ensure_eq!(late.body, "late", "the message that was put off");
    let took = settled.elapsed();
    ensure!(took + TICK >= DELAY, "a message put off for {DELAY:?} came back after {took:?}");
    Ok(())
}

async fn dead_letters_are_listed_with_their_reason(rig: QueueRig) -> Checked {
    ensure!(rig.letters.list(None, 100).await?.is_empty(), "there are dead letters before any message");
    for n in 0..2 {
        let body = format!("m{n}");
        let id = rig.queue.send(&body, &format!("d{n}")).await?;
        let delivery = next(rig.queue.as_ref()).await?;
        let reason = format!("reason {n}");
        rig.queue.settle(delivery, dead(&reason)).await?;
        let letters = rig.letters.list(None, 100).await?;
        ensure_eq!(letters.len(), n + 1, "the number of dead letters");
        let letter = &letters[n];
        ensure_eq!((&letter.id, &letter.body), (&id, &body), "the dead letter");
        ensure_eq!((letter.reason.as_str(), letter.receives), (reason.as_str(), 1), "the dead letter's reason");
    }
    is_empty(rig.queue.as_ref(), "after the messages died").await?;
    let name = if rig.abilities.repeats == Repeats::ForAWhile { "d0 again" } else { "d0" };
    let again = rig.queue.send("m0", name).await?;
    ensure_eq!(next(rig.queue.as_ref()).await?.id, again, "a message sent again after it died");
    Ok(())
}

async fn a_repeat_adds_nothing_until_the_first_is_settled(rig: QueueRig) -> Checked {
    let first = rig.queue.send("m", "d").await?;
    if rig.abilities.repeats != Repeats::UntilSettled {
        return a_repeat_loses_nothing(rig).await;
    }
    ensure_eq!(rig.other.send("m", "d").await?, first, "the name of a repeat");
    let delivery = next(rig.queue.as_ref()).await?;
    ensure_eq!(rig.queue.send("m", "d").await?, first, "the name of a repeat while the first is leased");
    is_empty(rig.queue.as_ref(), "after a repeat of a leased message").await?;
    rig.queue.settle(delivery, Settlement::Done).await?;
    let second = rig.queue.send("m", "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    ensure_eq!((&delivery.id, delivery.receives), (&second, 1), "the message sent after the first was done");
    ensure!(second != first, "a new message has the name of one that is done");
    Ok(())
}

/// Where a queue does not know repeats, each may come, and settling one does not take the other away.
async fn a_repeat_loses_nothing(rig: QueueRig) -> Checked {
    rig.other.send("m", "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    ensure_eq!((delivery.body.as_str(), delivery.receives), ("m", 1), "the first of two");
    rig.queue.settle(delivery, Settlement::Done).await?;
    while let Some(delivery) = rig.queue.receive(1).await?.pop() {
        ensure_eq!((delivery.body.as_str(), delivery.receives), ("m", 1), "the repeat");
        rig.queue.settle(delivery, Settlement::Done).await?;
    }
    ensure_eq!(rig.queue.depth().await?, Depth::default(), "the depth after all is done");
    Ok(())
}

async fn receives_are_counted(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    for expected in 1..=4 {
        let delivery = next(rig.queue.as_ref()).await?;
        ensure_eq!(delivery.receives, expected, "the receives");
        rig.queue.settle(delivery, Settlement::Retry(Duration::ZERO)).await?;
    }
    Ok(())
}

async fn depth_tells_the_messages_apart(rig: QueueRig) -> Checked {
    for n in 0..10 {
        rig.queue.send("m", &format!("d{n}")).await?;
    }
    let settlements = [Settlement::Done, Settlement::Retry(PATIENCE * 6), Settlement::Retry(PATIENCE * 6)];
    for settlement in settlements.into_iter().chain([dead("r")]) {
        let delivery = next(rig.queue.as_ref()).await?;
        rig.queue.settle(delivery, settlement).await?;
    }
    for _ in 0..2 {
        next(rig.other.as_ref()).await?;
    }
    let mut depth = rig.queue.depth().await?;
    if !rig.abilities.tells_what_is_put_off {
        (depth.leased, depth.delayed) = (depth.leased.saturating_sub(2), depth.delayed + 2);
    }
    let expected = Depth { waiting: 4, leased: 2, delayed: 2, dead: 1, oldest: depth.oldest };
    ensure_eq!(depth, expected, "the depth");
    Ok(())
}

async fn an_expired_lease_is_lost_to_the_next(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let received = Instant::now();
    let first = next(rig.queue.as_ref()).await?;
    let second = next(rig.other.as_ref()).await?;
    ensure!(received.elapsed() + TICK >= rig.visibility, "the lease ended after {:?}", received.elapsed());
    ensure_eq!((&second.id, second.receives), (&first.id, 2), "the message after its lease ended");
    let late = rig.queue.extend(&first).await;
    ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "extending a lost lease gives {late:?}");
    for settlement in [Settlement::Done, dead("late")] {
        let late = rig.queue.settle(first.clone(), settlement).await;
        ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "settling a lost lease gives {late:?}");
    }
    ensure!(rig.letters.list(None, 100).await?.is_empty(), "a lost lease made a dead letter");
    // The same worker, too, may get the message again: its old lease is lost all the same.
    let third = next(rig.other.as_ref()).await?;
    let late = rig.other.settle(second, Settlement::Done).await;
    ensure!(matches!(late, Err(QueueError::LeaseLost(_))), "settling one's own lost lease gives {late:?}");
    rig.other.settle(third, Settlement::Done).await?;
    is_empty(rig.queue.as_ref(), "after the message is done").await
}

async fn an_extended_lease_holds(rig: QueueRig) -> Checked {
    // A machine that stalls for longer than the lease proves nothing: then the check begins again.
    'stalled: for n in 0..5 {
        rig.queue.send("m", &format!("d{n}")).await?;
        let delivery = next(rig.queue.as_ref()).await?;
        let started = Instant::now();
        while started.elapsed() < rig.visibility.mul_f32(2.5) {
            let extended = Instant::now();
            let extension = rig.queue.extend(&delivery).await;
            sleep(rig.visibility / 4).await;
            let stolen = rig.other.receive(1).await?.pop();
            if extended.elapsed() >= rig.visibility / 2 {
                if let Some(delivery) = stolen {
                    rig.other.settle(delivery, Settlement::Done).await?;
                }
                let _ = rig.queue.settle(delivery, Settlement::Done).await;
                continue 'stalled;
            }
            extension?;
            ensure!(stolen.is_none(), "an extended lease was given to another");
        }
        rig.queue.settle(delivery, Settlement::Done).await?;
        return Ok(());
    }
    Err("the machine is too slow to keep a lease".into())
}
