//! A worker that runs until it is told to stop.

mod housekeeping;
mod in_hand;
mod shutdown;
mod vitals;

use std::{sync::Arc, time::Duration};

use sparks_engine::QueueError;
use tokio::{sync::watch, time::sleep};

use in_hand::InHand;

use crate::consumer::{Breaker, Consumer, Raw};

pub use housekeeping::Housekeeping;
pub use shutdown::Shutdown;
pub use vitals::Vitals;

/// How soon an empty queue is asked again.
const POLL: Duration = Duration::from_millis(200);
/// How long anything is waited for without a sign of life.
const TICK: Duration = Duration::from_secs(1);

/// Takes messages while there is room, and none while something it depends on is down.
pub struct Service {
    /// Who works messages off.
    pub consumer: Consumer,
    /// Who knows whether the world is there.
    pub breaker: Breaker,
    /// Messages worked on at once.
    pub slots: usize,
    /// For work in hand to end.
    pub grace: Duration,
    /// Whether to stop when nothing is left to do.
    pub drain: bool,
    /// How it is.
    pub vitals: Arc<Vitals>,
}

impl Service {
    /// Works until told to stop; then finishes what is in hand, or gives it back.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut in_hand = InHand::default();
        while !*stop.borrow() {
            self.vitals.beat(in_hand.len(), self.slots);
            if in_hand.len() >= self.slots {
                or_tick(in_hand.next(), &mut stop).await;
                continue;
            }
            if self.breaker.down().is_some() {
                or_tick(self.breaker.closed(), &mut stop).await;
                continue;
            }
            // A slot comes before each receive: what is received is begun.
            let Some(received) = self.receive(&mut in_hand, &mut stop).await else { continue };
            match received {
                Ok(received) if received.is_empty() => {
                    if self.drain && in_hand.is_empty() && self.is_done().await {
                        break;
                    }
                    or_tick(in_hand.next_within(POLL), &mut stop).await;
                }
                Ok(received) => self.begin(received, &mut in_hand),
                Err(QueueError::Denied(what)) => self.breaker.denied(&what),
                Err(error) => {
                    tracing::warn!(%error, "cannot receive");
                    self.breaker.is_down().await;
                    or_tick(sleep(TICK), &mut stop).await;
                }
            }
        }
        self.vitals.stop_receiving();
        tracing::info!(in_hand = in_hand.len(), "no more messages are taken");
        in_hand.finish(self.grace, &self.consumer).await;
    }

    /// Receives as much as there is room for. Where the queue waits for messages, work in hand ends meanwhile, and somebody may
    /// say stop.
    async fn receive(
        &self,
        in_hand: &mut InHand,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<Result<Vec<Raw>, QueueError>> {
        let receiving = self.consumer.receive(self.slots - in_hand.len());
        if self.consumer.queue.waits().is_zero() {
            return Some(receiving.await);
        }
        tokio::pin!(receiving);
        loop {
            tokio::select! {
                received = &mut receiving => return Some(received),
                () = or_tick(in_hand.next_within(TICK), stop) => {}
            }
            if *stop.borrow() {
                return None;
            }
            self.vitals.beat(in_hand.len(), self.slots);
        }
    }

    fn begin(&self, received: Vec<Raw>, in_hand: &mut InHand) {
        for raw in received {
            let (consumer, delivery) = (self.consumer.clone(), raw.delivery.clone());
            in_hand.spawn(delivery, async move {
                if let Err(error) = consumer.work_off(raw).await {
                    tracing::warn!(%error, "a message was not settled, and comes again");
                }
            });
        }
    }

    /// Whether nothing is left to do, now or later, by anybody.
    async fn is_done(&self) -> bool {
        match self.consumer.queue.depth().await {
            Ok(depth) => depth.waiting + depth.leased + depth.delayed == 0,
            Err(QueueError::Unavailable(_) | QueueError::Denied(_) | QueueError::LeaseLost(_)) => false,
        }
    }
}

/// Waits for this, but not so long that nobody sees a sign of life, and not once told to stop.
async fn or_tick<T>(work: impl Future<Output = T>, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        _ = work => {}
        () = sleep(TICK) => {}
        _ = stop.changed() => {}
    }
}
