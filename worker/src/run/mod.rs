//! The receive loop of a worker.

mod background_tasks;
mod in_flight;
mod shutdown;
mod worker_health;

use std::{sync::Arc, time::Duration};

use sparks_engine::{DependencyError, QueueError};
use tokio::{sync::watch, time::sleep};

use in_flight::InFlightMessages;

use crate::consumer::{CircuitBreaker, Consumer, ReceivedMessage};

pub use background_tasks::BackgroundTasks;
pub use shutdown::Shutdown;
pub use worker_health::WorkerHealth;

/// The delay before an empty queue is polled again.
const POLL: Duration = Duration::from_millis(200);
/// The longest wait between two heartbeats.
const TICK: Duration = Duration::from_secs(1);

/// Receives messages while there are free slots, and none while a dependency is down.
pub struct ReceiveLoop {
    /// Receives and handles messages.
    pub consumer: Consumer,
    /// Detects outages.
    pub breaker: CircuitBreaker,
    /// The number of messages in flight at once.
    pub slots: usize,
    /// How long messages in flight may take after a signal to stop.
    pub grace: Duration,
    /// Whether to stop when the queue is empty.
    pub drain: bool,
    /// The health endpoints.
    pub health: Arc<WorkerHealth>,
}

impl ReceiveLoop {
    /// Runs until told to stop; then finishes the messages in flight, or releases them.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut in_flight = InFlightMessages::default();
        while !*stop.borrow() {
            self.health.heartbeat(in_flight.len(), self.slots);
            if in_flight.len() >= self.slots {
                or_tick(in_flight.next(), &mut stop).await;
                continue;
            }
            if self.breaker.outage().is_some() {
                or_tick(self.breaker.wait_until_closed(), &mut stop).await;
                continue;
            }
            // There is a free slot before each receive: every message received is started at once.
            let Some(received) = self.receive(&mut in_flight, &mut stop).await else { continue };
            match received {
                Ok(received) if received.is_empty() => {
                    if self.drain && in_flight.is_empty() && self.is_queue_empty().await {
                        break;
                    }
                    or_tick(in_flight.next_within(POLL), &mut stop).await;
                }
                Ok(received) => self.start(received, &mut in_flight),
                Err(QueueError::Dependency(DependencyError::AccessDenied(reason))) => {
                    self.breaker.access_denied(&reason)
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to receive messages");
                    self.breaker.is_open_after_check().await;
                    or_tick(sleep(TICK), &mut stop).await;
                }
            }
        }
        self.health.stop_receiving();
        tracing::info!(in_flight = in_flight.len(), "stopped receiving messages");
        in_flight.finish(self.grace, &self.consumer).await;
    }

    /// Receives as many messages as there are free slots. `None` when told to stop during long polling, in which messages in flight go
    /// on.
    async fn receive(
        &self,
        in_flight: &mut InFlightMessages,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<Result<Vec<ReceivedMessage>, QueueError>> {
        let receiving = self.consumer.receive(self.slots - in_flight.len());
        if self.consumer.queue.wait_time().is_zero() {
            return Some(receiving.await);
        }
        tokio::pin!(receiving);
        loop {
            tokio::select! {
                received = &mut receiving => return Some(received),
                () = or_tick(in_flight.next_within(TICK), stop) => {}
            }
            if *stop.borrow() {
                return None;
            }
            self.health.heartbeat(in_flight.len(), self.slots);
        }
    }

    fn start(&self, received: Vec<ReceivedMessage>, in_flight: &mut InFlightMessages) {
        for message in received {
            let (consumer, delivery) = (self.consumer.clone(), message.delivery.clone());
            in_flight.spawn(delivery, async move {
                if let Err(error) = consumer.handle(message).await {
                    tracing::warn!(%error, "failed to settle a message; it is delivered again after its visibility timeout");
                }
            });
        }
    }

    /// Returns whether no message is waiting, in flight or delayed, in any worker.
    async fn is_queue_empty(&self) -> bool {
        let depth = self.consumer.queue.depth().await;
        depth.is_ok_and(|depth| depth.waiting + depth.leased + depth.delayed == 0)
    }
}

/// Runs the future until it ends, a tick passes, or the worker is told to stop.
async fn or_tick<T>(work: impl Future<Output = T>, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        _ = work => {}
        () = sleep(TICK) => {}
        _ = stop.changed() => {}
    }
}
