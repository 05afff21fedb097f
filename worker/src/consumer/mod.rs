//! Takes messages off the queue and works them off, several at once.

mod breaker;
mod lease;
mod message;

use std::{sync::Arc, time::Duration};

use sparks_engine::{
    Cause, Class, Clock, Failure, MessageId, Perseverance, Pipeline, Queue, QueueError, Settlement, Turnstile,
};
use tokio::sync::Mutex;
use tracing::Instrument;

pub use breaker::Breaker;
use message::Finished;
pub use message::Raw;

use crate::telemetry::metrics::Metrics;

/// Works messages off. Clones share the line of arrival.
#[derive(Clone)]
pub struct Consumer {
    /// Where messages come from.
    pub queue: Arc<dyn Queue>,
    /// Who does what they ask for.
    pub pipeline: Arc<Pipeline>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who knows whether the world is there; without, a failure is always the message's.
    pub breaker: Option<Breaker>,
    /// The numbers.
    pub metrics: Metrics,
    /// The bucket's name.
    pub bucket: Arc<str>,
    /// How long a lease lasts.
    pub visibility: Duration,
    /// How often and how long to try.
    pub perseverance: Perseverance,
    /// The line of arrival.
    pub line: Arc<Mutex<Turnstile>>,
}

/// For how long it is news that something is not there yet.
const NEWS: Duration = Duration::from_secs(2);

/// A message that was worked on.
pub struct Worked {
    /// Which.
    pub message: MessageId,
    /// Whether nobody need look at it again.
    pub settled: bool,
}

impl Consumer {
    /// At most so many messages. The order of receiving is the order of the line: nobody else receives in between.
    pub async fn receive(&self, most: usize) -> Result<Vec<Raw>, QueueError> {
        let line = self.line.lock().await;
        let deliveries = self.queue.receive(most).await?;
        Ok(deliveries.into_iter().map(|delivery| Raw { delivery, turn: line.ticket() }).collect())
    }

    /// Works off one message.
    pub async fn work_off(&self, raw: Raw) -> Result<Worked, QueueError> {
        let span = tracing::info_span!("message", message_id = %raw.delivery.id.0, receives = raw.delivery.receives);
        async {
            let finished = match raw.understand(&self.bucket) {
                Ok(understood) => {
                    understood.begin(&self.queue, self.visibility).work(&self.pipeline, &self.metrics).await
                }
                Err(finished) => *finished,
            };
            self.settle(finished).await
        }
        .instrument(span)
        .await
    }

    async fn settle(&self, Finished { delivery, result, span }: Finished) -> Result<Worked, QueueError> {
        let message = delivery.id.clone();
        let settlement = match &result {
            Err(failure) if may_be_outage(failure.cause) && self.is_outage().await => {
                self.metrics.retried("unavailable");
                Settlement::Release
            }
            // What we may not do, we may not do for the next message either.
            Err(Failure { cause: Cause::Denied, message }) if self.is_denied(message) => {
                self.metrics.retried("denied");
                Settlement::Release
            }
            _ => self.perseverance.settlement(&result, &delivery, self.clock.now()),
        };
        if let (Ok(()), Some(breaker)) = (&result, &self.breaker) {
            breaker.allowed();
        }
        span.in_scope(|| self.tell(&result, &settlement, delivery.age(self.clock.now())));
        let settled = matches!(settlement, Settlement::Done | Settlement::DeadLetter { .. });
        loop {
            match self.queue.settle(delivery.clone(), settlement.clone()).await {
                Ok(()) => return Ok(Worked { message, settled }),
                // Somebody else has it now, and will find it committed.
                Err(QueueError::LeaseLost(_)) => return Ok(Worked { message, settled: false }),
                Err(QueueError::Denied(what)) if self.is_denied(&what) => self.until_closed().await,
                Err(error) => match &self.breaker {
                    // The queue itself is down: it is told once it is back.
                    Some(breaker) if breaker.is_down().await => breaker.closed().await,
                    _ => return Err(error),
                },
            }
        }
    }

    /// Whether the failure is the world's and not the message's.
    async fn is_outage(&self) -> bool {
        match &self.breaker {
            Some(breaker) => breaker.is_down().await,
            None => false,
        }
    }

    /// Stops the polling for what we may not do; where nobody polls, it is a failure like others.
    fn is_denied(&self, what: &str) -> bool {
        self.breaker.iter().for_each(|breaker| breaker.denied(what));
        self.breaker.is_some()
    }

    async fn until_closed(&self) {
        if let Some(breaker) = &self.breaker {
            breaker.closed().await;
        }
    }

    fn tell(&self, result: &Result<(), Failure>, settlement: &Settlement, age: Duration) {
        let (name, again) = match settlement {
            Settlement::Done => ("done", None),
            Settlement::Retry(after) => ("retry", Some(*after)),
            Settlement::Wait(after) => ("wait", Some(*after)),
            Settlement::Release => ("release", Some(Duration::ZERO)),
            Settlement::DeadLetter { .. } => ("dead", None),
        };
        self.metrics.settled(name);
        let Err(failure) = result else { return };
        let (cause, seconds) = (failure.cause.code(), again.map(|again| again.as_millis() as f64 / 1000.0));
        match (failure.cause.class(), settlement) {
            (_, Settlement::DeadLetter { .. }) => tracing::error!(cause, %failure, "dead letter"),
            (Class::NotYet, _) => {
                self.metrics.retried("not_yet");
                // Said while it is news; thousands may wait for long.
                if age < NEWS {
                    tracing::info!(cause, %failure, seconds, "not yet");
                } else {
                    tracing::debug!(cause, %failure, seconds, "not yet");
                }
            }
            (Class::Busy, _) => {
                self.metrics.retried("busy");
                tracing::warn!(cause, %failure, seconds, "waits until there is less to do");
            }
            (_, Settlement::Retry(_)) => {
                self.metrics.retried("transient");
                tracing::warn!(cause, %failure, seconds, "will be tried again");
            }
            _ => tracing::warn!(cause, %failure, "given back"),
        }
    }
}

/// Whether everybody may be in the same trouble.
fn may_be_outage(cause: Cause) -> bool {
    matches!(cause, Cause::Unavailable | Cause::Busy)
}
