//! Messages that are given back: for a failure, for want of something, or for somebody else.

use std::time::{Duration, Instant};

use sparks_engine::{QueueError, Settlement};
use tokio::time::sleep;

use super::{DELAY, QueueRig, TICK, is_empty, next};
use crate::contract::{Checked, ensure, ensure_eq};

const AT_ONCE: Duration = Duration::ZERO;

pub(super) async fn waiting_is_no_attempt_and_failing_is(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let given_back = [
        (Settlement::Wait(AT_ONCE), 1),
        (Settlement::Release, 1),
        (Settlement::Retry(AT_ONCE), 1),
        (Settlement::Release, 2),
        (Settlement::Wait(AT_ONCE), 2),
        (Settlement::Wait(AT_ONCE), 2),
        (Settlement::Retry(AT_ONCE), 2),
        (Settlement::Done, 3),
    ];
    for (n, (settlement, receives)) in given_back.into_iter().enumerate() {
        let delivery = next(rig.queue.as_ref()).await?;
        ensure_eq!(delivery.receives, receives, "the receives when it comes for the {}. time", n + 1);
        rig.queue.settle(delivery, settlement).await?;
    }
    Ok(())
}

pub(super) async fn a_wait_hides_the_message_for_a_while(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let delivery = next(rig.queue.as_ref()).await?;
    let settled = Instant::now();
    rig.queue.settle(delivery, Settlement::Wait(DELAY)).await?;
    let depth = rig.queue.depth().await?;
    // A machine that stalls for as long as the message waits proves nothing.
    if settled.elapsed() < DELAY / 2 {
        ensure_eq!((depth.waiting, depth.leased, depth.delayed), (0, 0, 1), "the depth while the message waits");
    }
    next(rig.other.as_ref()).await?;
    let took = settled.elapsed();
    ensure!(took + TICK >= DELAY, "a message that was to wait for {DELAY:?} came back after {took:?}");
    Ok(())
}

pub(super) async fn a_message_keeps_the_time_it_was_sent(rig: QueueRig) -> Checked {
    rig.queue.send("m", "d").await?;
    let sent = {
        let delivery = next(rig.queue.as_ref()).await?;
        let sent = delivery.sent;
        sleep(TICK * 10).await;
        rig.queue.settle(delivery, Settlement::Wait(AT_ONCE)).await?;
        sent
    };
    ensure!(sent.as_millis() > 1_600_000_000_000, "the message was sent at {sent}");
    for settlement in [Settlement::Release, Settlement::Retry(AT_ONCE), Settlement::Wait(AT_ONCE), Settlement::Done] {
        let delivery = next(rig.queue.as_ref()).await?;
        ensure_eq!(delivery.sent, sent, "when it was sent, before {settlement:?}");
        sleep(TICK * 5).await;
        rig.queue.settle(delivery, settlement).await?;
    }
    rig.queue.send("later", "later").await?;
    ensure!(next(rig.queue.as_ref()).await?.sent > sent, "a later message was not sent later");
    Ok(())
}

pub(super) async fn a_released_message_is_there_for_others_at_once(rig: QueueRig) -> Checked {
    let id = rig.queue.send("m", "d").await?;
    for (holder, other) in [(&rig.queue, &rig.other), (&rig.other, &rig.queue)] {
        let delivery = next(holder.as_ref()).await?;
        ensure_eq!(delivery.id, id, "the message");
        is_empty(other.as_ref(), "while somebody has the message").await?;
        holder.settle(delivery, Settlement::Release).await?;
        let released = Instant::now();
        let theirs = next(other.as_ref()).await?;
        ensure!(released.elapsed() < DELAY * 3, "a released message came after {:?}", released.elapsed());
        ensure_eq!((&theirs.id, theirs.receives), (&id, 1), "the released message");
        other.settle(theirs, Settlement::Release).await?;
    }
    Ok(())
}

/// Whoever gives a message back has nothing more to say about it, even where they get it again.
pub(super) async fn a_lease_that_was_given_back_is_lost(rig: QueueRig) -> Checked {
    for (n, settlement) in
        [Settlement::Release, Settlement::Wait(AT_ONCE), Settlement::Retry(AT_ONCE)].into_iter().enumerate()
    {
        rig.queue.send("m", &format!("d{n}")).await?;
        let first = next(rig.queue.as_ref()).await?;
        rig.queue.settle(first.clone(), settlement.clone()).await?;
        let lost = rig.queue.settle(first.clone(), Settlement::Done).await;
        ensure!(matches!(lost, Err(QueueError::LeaseLost(_))), "settling again after {settlement:?} gives {lost:?}");
        let second = next(rig.queue.as_ref()).await?;
        let lost = rig.queue.extend(&first).await;
        ensure!(matches!(lost, Err(QueueError::LeaseLost(_))), "extending after {settlement:?} gives {lost:?}");
        let lost = rig.queue.settle(first, Settlement::Done).await;
        ensure!(
            matches!(lost, Err(QueueError::LeaseLost(_))),
            "settling the lease before {settlement:?} gives {lost:?}"
        );
        rig.queue.settle(second, Settlement::Done).await?;
    }
    is_empty(rig.queue.as_ref(), "after all is done").await
}

pub(super) async fn depth_tells_since_when_the_oldest_waits(rig: QueueRig) -> Checked {
    ensure_eq!(rig.queue.depth().await?.oldest, None, "the oldest of no messages");
    if !rig.abilities.tells_the_oldest {
        return Ok(());
    }
    rig.queue.send("first", "d0").await?;
    sleep(TICK * 10).await;
    rig.queue.send("second", "d1").await?;
    let before = rig.queue.depth().await?.oldest;
    let first = next(rig.queue.as_ref()).await?;
    ensure_eq!(before, Some(first.sent), "since when the oldest of two waits");
    let left = rig.queue.depth().await?.oldest;
    let second = next(rig.queue.as_ref()).await?;
    ensure_eq!(left, Some(second.sent), "since when the one that is left waits");
    ensure_eq!(rig.other.depth().await?.oldest, None, "the oldest where all are leased");
    let sent = second.sent; // later than the first by ten ticks
    rig.queue.settle(second, Settlement::Wait(DELAY * 60)).await?;
    ensure_eq!(rig.queue.depth().await?.oldest, None, "the oldest where one is leased and one put off");
    sleep(TICK * 10).await;
    rig.queue.settle(first, Settlement::Release).await?;
    // It has been waiting since it was given back, and not while somebody had it.
    let oldest = rig.queue.depth().await?.oldest;
    ensure!(oldest >= Some(sent), "the released message waits since {oldest:?}");
    Ok(())
}
