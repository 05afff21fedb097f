//! Messages that return to the queue: retries, deferrals and releases.

use std::time::{Duration, Instant};

use sparks_engine::{QueueError, Settlement};
use tokio::time::sleep;

use super::{DELAY, QueueFixture, TICK, ensure_empty, receive_one};
use crate::contract::{CheckResult, ensure, ensure_eq};

const NO_DELAY: Duration = Duration::ZERO;

pub(super) async fn only_retries_count_as_attempts(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let settlements = [
        (Settlement::Defer(NO_DELAY), 1),
        (Settlement::Release, 1),
        (Settlement::Retry(NO_DELAY), 1),
        (Settlement::Release, 2),
        (Settlement::Defer(NO_DELAY), 2),
        (Settlement::Defer(NO_DELAY), 2),
        (Settlement::Retry(NO_DELAY), 2),
        (Settlement::Acknowledge, 3),
    ];
    for (n, (settlement, receives)) in settlements.into_iter().enumerate() {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        ensure_eq!(delivery.receives, receives, "receive count of delivery {}", n + 1);
        fixture.queue.settle(delivery, settlement).await?;
    }
    Ok(())
}

pub(super) async fn a_deferral_delays_the_message(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let delivery = receive_one(fixture.queue.as_ref()).await?;
    let settled = Instant::now();
    fixture.queue.settle(delivery, Settlement::Defer(DELAY)).await?;
    let depth = fixture.queue.depth().await?;
    // On a machine that stalls for as long as the delay, the depth has no meaning.
    if settled.elapsed() < DELAY / 2 {
        ensure_eq!((depth.waiting, depth.leased, depth.delayed), (0, 0, 1), "the depth while the message is deferred");
    }
    receive_one(fixture.other.as_ref()).await?;
    let took = settled.elapsed();
    ensure!(took + TICK >= DELAY, "a message deferred by {DELAY:?} was delivered after {took:?}");
    Ok(())
}

pub(super) async fn a_message_keeps_its_send_time(fixture: QueueFixture) -> CheckResult {
    fixture.queue.send("m", "d").await?;
    let sent = {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        let sent = delivery.sent;
        sleep(TICK * 10).await;
        fixture.queue.settle(delivery, Settlement::Defer(NO_DELAY)).await?;
        sent
    };
    ensure!(sent.as_millis() > 1_600_000_000_000, "the message was sent at {sent}");
    for settlement in
        [Settlement::Release, Settlement::Retry(NO_DELAY), Settlement::Defer(NO_DELAY), Settlement::Acknowledge]
    {
        let delivery = receive_one(fixture.queue.as_ref()).await?;
        ensure_eq!(delivery.sent, sent, "send time before {settlement:?}");
        sleep(TICK * 5).await;
        fixture.queue.settle(delivery, settlement).await?;
    }
    fixture.queue.send("later", "later").await?;
    ensure!(receive_one(fixture.queue.as_ref()).await?.sent > sent, "a later message has an earlier send time");
    Ok(())
}

pub(super) async fn a_released_message_is_receivable_at_once(fixture: QueueFixture) -> CheckResult {
    let id = fixture.queue.send("m", "d").await?;
    for (holder, other) in [(&fixture.queue, &fixture.other), (&fixture.other, &fixture.queue)] {
        let delivery = receive_one(holder.as_ref()).await?;
        ensure_eq!(delivery.id, id, "the message");
        ensure_empty(other.as_ref(), "while the message is leased").await?;
        holder.settle(delivery, Settlement::Release).await?;
        let released = Instant::now();
        let received = receive_one(other.as_ref()).await?;
        ensure!(released.elapsed() < DELAY * 3, "a released message was delivered after {:?}", released.elapsed());
        ensure_eq!((&received.id, received.receives), (&id, 1), "the released message");
        other.settle(received, Settlement::Release).await?;
    }
    Ok(())
}

/// The old lease stays lost even if the same worker receives the message again.
pub(super) async fn settling_ends_the_lease(fixture: QueueFixture) -> CheckResult {
    for (n, settlement) in
        [Settlement::Release, Settlement::Defer(NO_DELAY), Settlement::Retry(NO_DELAY)].into_iter().enumerate()
    {
        fixture.queue.send("m", &format!("d{n}")).await?;
        let first = receive_one(fixture.queue.as_ref()).await?;
        fixture.queue.settle(first.clone(), settlement.clone()).await?;
        let lost = fixture.queue.settle(first.clone(), Settlement::Acknowledge).await;
        ensure!(matches!(lost, Err(QueueError::LeaseLost(_))), "settling again after {settlement:?} returns {lost:?}");
        let second = receive_one(fixture.queue.as_ref()).await?;
        let lost = fixture.queue.extend(&first).await;
        ensure!(matches!(lost, Err(QueueError::LeaseLost(_))), "extending after {settlement:?} returns {lost:?}");
        let lost = fixture.queue.settle(first, Settlement::Acknowledge).await;
        ensure!(
            matches!(lost, Err(QueueError::LeaseLost(_))),
            "settling the lease before {settlement:?} returns {lost:?}"
        );
        fixture.queue.settle(second, Settlement::Acknowledge).await?;
    }
    ensure_empty(fixture.queue.as_ref(), "after all messages were acknowledged").await
}

pub(super) async fn depth_reports_the_oldest_waiting_message(fixture: QueueFixture) -> CheckResult {
    ensure_eq!(fixture.queue.depth().await?.oldest, None, "oldest message of an empty queue");
    if !fixture.capabilities.reports_oldest {
        return Ok(());
    }
    fixture.queue.send("first", "d0").await?;
    sleep(TICK * 10).await;
    fixture.queue.send("second", "d1").await?;
    let before = fixture.queue.depth().await?.oldest;
    let first = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!(before, Some(first.sent), "oldest of two waiting messages");
    let left = fixture.queue.depth().await?.oldest;
    let second = receive_one(fixture.queue.as_ref()).await?;
    ensure_eq!(left, Some(second.sent), "oldest message when one is left");
    ensure_eq!(fixture.other.depth().await?.oldest, None, "oldest message when all are leased");
    let sent = second.sent; // later than the first by ten ticks
    fixture.queue.settle(second, Settlement::Defer(DELAY * 60)).await?;
    ensure_eq!(fixture.queue.depth().await?.oldest, None, "oldest message when one is leased and one delayed");
    sleep(TICK * 10).await;
    fixture.queue.settle(first, Settlement::Release).await?;
    // It waits since its release; the time of the lease does not count.
    let oldest = fixture.queue.depth().await?.oldest;
    ensure!(oldest >= Some(sent), "the oldest message is reported as waiting since {oldest:?}");
    Ok(())
}
