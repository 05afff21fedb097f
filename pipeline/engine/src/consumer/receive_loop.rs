//! The receive loop, which `sparks run` and `sparks ingest` share.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{ConcurrencyLimit, Consumer, ReceivedMessage, SettledMessage, in_flight::InFlightMessages};
use crate::{Cause, DependencyError, QueueError};

/// The longest wait between two heartbeats.
const TICK: Duration = Duration::from_secs(1);

/// Receives messages while there are free slots, and none while a dependency is down.
pub struct ReceiveLoop {
    /// Receives and handles messages.
    pub consumer: Consumer,
    /// The number of messages in flight at once; fewer while a dependency throttles.
    pub slots: usize,
    /// The delay before an empty queue is polled again.
    pub poll: Duration,
    /// How long messages in flight may take after a signal to stop.
    pub grace: Duration,
    /// The time without a working dependency after which the loop ends; without it, it waits for ever.
    pub max_outage: Option<Duration>,
    /// Follows the loop and says when it is done.
    pub observer: Arc<dyn LoopObserver>,
}

/// Follows a receive loop.
#[async_trait]
pub trait LoopObserver: Send + Sync {
    /// Called at least every second while the loop receives messages.
    fn heartbeat(&self) {}

    /// Called for each message that was settled.
    fn message_settled(&self, _: &SettledMessage) {}

    /// Called once no more messages are received.
    fn receiving_stopped(&self) {}

    /// Returns whether the loop may end. Called when no message is visible and none is in flight here.
    async fn is_done(&self) -> bool;
}

/// A loop that ended because a dependency did not recover.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (for {} s)", .lasted.as_secs())]
pub struct LastingOutage {
    /// What was down.
    pub reason: String,
    /// For how long.
    pub lasted: Duration,
}

impl ReceiveLoop {
    /// Runs until told to stop or done; then finishes the messages in flight, or releases them.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), LastingOutage> {
        let mut in_flight = InFlightMessages::default();
        let mut limit = ConcurrencyLimit::new(self.slots);
        let ended = self.receive_until_stopped(&mut in_flight, &mut limit, &mut stop).await;
        self.observer.receiving_stopped();
        tracing::info!(in_flight = in_flight.len(), "stopped receiving messages");
        in_flight.finish(self.grace, &self.consumer, |message| self.settled(&message, &mut limit)).await;
        ended
    }

    async fn receive_until_stopped(
        &self,
        in_flight: &mut InFlightMessages,
        limit: &mut ConcurrencyLimit,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), LastingOutage> {
        let breaker = &self.consumer.breaker;
        let mut last_available = Instant::now();
        while !*stop.borrow() {
            self.heartbeat(in_flight, limit);
            if let Some(reason) = breaker.outage() {
                let lasted = last_available.elapsed();
                if self.max_outage.is_some_and(|longest| lasted >= longest) {
                    return Err(LastingOutage { reason, lasted });
                }
                or_tick(breaker.wait_until_closed(), stop).await;
                continue;
            }
            last_available = Instant::now();
            if in_flight.len() >= limit.get() {
                let settled = or_tick(in_flight.next(), stop).await.flatten();
                settled.into_iter().for_each(|message| self.settled(&message, limit));
                continue;
            }
            // There is a free slot before each receive: every message received is started at once.
            let Some(received) = self.receive(in_flight, limit, stop).await else { continue };
            match received {
                Ok(received) if received.is_empty() => {
                    if in_flight.is_empty() && self.observer.is_done().await {
                        break;
                    }
                    let settled = or_tick(in_flight.next_within(self.poll), stop).await.flatten();
                    settled.into_iter().for_each(|message| self.settled(&message, limit));
                }
                Ok(received) => {
                    received.into_iter().for_each(|message| in_flight.start(self.consumer.clone(), message));
                }
                Err(QueueError::Dependency(DependencyError::AccessDenied(reason))) => {
                    breaker.pause(Cause::AccessDenied, &reason)
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to receive messages");
                    breaker.is_open_after_check().await;
                    or_tick(sleep(TICK), stop).await;
                }
            }
        }
        Ok(())
    }

    /// Receives as many messages as there are free slots. `None` when told to stop during long polling, in which messages in flight go
    /// on.
    async fn receive(
        &self,
        in_flight: &mut InFlightMessages,
        limit: &mut ConcurrencyLimit,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<Result<Vec<ReceivedMessage>, QueueError>> {
        let receiving = self.consumer.receive(limit.get() - in_flight.len());
        if self.consumer.queue.wait_time().is_zero() {
            return Some(receiving.await);
        }
        tokio::pin!(receiving);
        loop {
            let settled = tokio::select! {
                biased;
                received = &mut receiving => return Some(received),
                settled = or_tick(in_flight.next_within(TICK), stop) => settled.flatten(),
            };
            settled.into_iter().for_each(|message| self.settled(&message, limit));
            if *stop.borrow() {
                return None;
            }
            self.heartbeat(in_flight, limit);
        }
    }

    fn settled(&self, message: &SettledMessage, limit: &mut ConcurrencyLimit) {
        if message.is_throttled {
            limit.decrease()
        } else {
            limit.increase()
        }
        self.observer.message_settled(message);
    }

    fn heartbeat(&self, in_flight: &InFlightMessages, limit: &ConcurrencyLimit) {
        self.consumer.pipeline.ports.meter.record_concurrency(in_flight.len(), limit.get(), self.slots);
        self.observer.heartbeat();
    }
}

/// Runs the future until it ends, a tick passes, or the worker is told to stop.
async fn or_tick<T>(work: impl Future<Output = T>, stop: &mut watch::Receiver<bool>) -> Option<T> {
    tokio::select! {
        biased;
        _ = stop.changed() => None,
        done = work => Some(done),
        () = sleep(TICK) => None,
    }
}
