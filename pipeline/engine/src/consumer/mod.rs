//! The story of a message: receive, parse, process, settle.
//!
//! `receive_loop.rs` calls it in a loop; what a failure means for the message is in `failure.rs`.

mod circuit_breaker;
mod concurrency_limit;
mod in_flight;
mod lease;
mod receive_loop;

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::Instant};
use tracing::{Instrument, Span, field};

pub use circuit_breaker::CircuitBreaker;
use concurrency_limit::ConcurrencyLimit;
use lease::keep_lease;
pub use receive_loop::{LastingOutage, LoopObserver, ReceiveLoop};

use crate::{
    ArrivalOrder, ArrivalSlot, Cause, Class, Delivery, DependencyError, Failure, MessageId, Outcome, Pipeline, Ports,
    Queue, QueueError, Request, RetryClass, RetryPolicy, Settlement, parse_message,
};

/// Receives, processes and settles messages. Clones share the arrival order and the circuit breaker.
#[derive(Clone)]
pub struct Consumer {
    queue: Arc<dyn Queue>,
    pipeline: Arc<Pipeline>,
    breaker: CircuitBreaker,
    config: ConsumerConfig,
    /// The order in which messages were received.
    arrival_order: Arc<Mutex<ArrivalOrder>>,
}

/// The settings of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// The visibility timeout of a message.
    pub visibility_timeout: Duration,
    /// How often and for how long a message is tried.
    pub retry_policy: RetryPolicy,
}

/// A received message under its lease.
pub struct ReceivedMessage {
    /// The message.
    pub delivery: Delivery,
    slot: ArrivalSlot,
    /// Whether the reply of the queue took so long that the lease may have ended.
    may_be_expired: bool,
}

/// A message that was processed and settled.
pub struct SettledMessage {
    /// The message.
    pub id: MessageId,
    /// Whether it is acknowledged or a dead letter, so that it is not delivered again.
    pub is_final: bool,
    /// Whether a dependency throttled it.
    pub is_throttled: bool,
}

/// The result of processing a message, to be settled.
struct ProcessedMessage {
    delivery: Delivery,
    result: Result<(), Failure>,
    /// The span of the request that failed.
    span: Span,
}

/// The age up to which a message that waits is logged at info level: thousands may wait for a long time.
const LOGGED_WAIT: Duration = Duration::from_secs(2);

impl Consumer {
    /// Creates a consumer of this queue, with a circuit breaker over the dependencies of the pipeline.
    pub fn new(queue: Arc<dyn Queue>, pipeline: Arc<Pipeline>, config: ConsumerConfig) -> Self {
        let breaker = CircuitBreaker::new(&pipeline);
        Self { queue, pipeline, breaker, config, arrival_order: Arc::default() }
    }

    /// Returns the circuit breaker.
    pub fn breaker(&self) -> &CircuitBreaker {
        &self.breaker
    }

    /// Receives at most `most` messages. No other receive runs meanwhile, so that slots are in the order of the queue.
    pub async fn receive(&self, most: usize) -> Result<Vec<ReceivedMessage>, QueueError> {
        let order = self.arrival_order.lock().await;
        let asked = Instant::now();
        let deliveries = self.queue.receive(most).await?;
        let may_be_expired = asked.elapsed() > self.queue.wait_time() + self.config.visibility_timeout / 3;
        let received =
            |delivery: Delivery| ReceivedMessage { slot: order.slot(delivery.sent), delivery, may_be_expired };
        Ok(deliveries.into_iter().map(received).collect())
    }

    /// Parses, processes and settles one message. Stops when the lease is lost: another worker processes the message then.
    pub async fn handle(&self, message: ReceivedMessage) -> Result<SettledMessage, QueueError> {
        let ReceivedMessage { delivery, slot, may_be_expired } = message;
        let span = tracing::info_span!("message", message_id = %delivery.id.0, receives = delivery.receives);
        async {
            if may_be_expired && let Err(error) = self.queue.extend(&delivery).await {
                return Ok(self.give_up(delivery, error).await);
            }
            let processed = match parse_message(&delivery.body, &self.pipeline.config.bucket) {
                Ok(requests) => {
                    let lost = keep_lease(self.queue.as_ref(), &delivery, self.config.visibility_timeout);
                    let processed = tokio::select! {
                        biased;
                        error = lost => Err(error),
                        processed = self.process(delivery.clone(), requests, slot) => Ok(processed),
                    };
                    match processed {
                        Ok(processed) => processed,
                        Err(error) => return Ok(self.give_up(delivery, error).await),
                    }
                }
                Err(malformed) => {
                    drop(slot); // later messages need not wait for the queue
                    ProcessedMessage { delivery, result: Err(malformed.into()), span: Span::none() }
                }
            };
            self.settle(processed).await
        }
        .instrument(span)
        .await
    }

    /// Leaves a message to the worker that receives it next. Receiving stops where the queue is down or denies access.
    async fn give_up(&self, delivery: Delivery, error: QueueError) -> SettledMessage {
        tracing::warn!(%error, "lease lost: stopped processing");
        self.pipeline.ports.meter.record_settlement("lost");
        match error {
            QueueError::Dependency(DependencyError::AccessDenied(reason)) => {
                self.breaker.pause(Cause::AccessDenied, &reason);
            }
            QueueError::Dependency(_) => drop(self.breaker.is_open_after_check().await),
            QueueError::LeaseLost(_) => {}
        }
        // Counts as throttled, since a worker with fewer messages in flight is faster.
        SettledMessage { id: delivery.id, is_final: false, is_throttled: true }
    }

    /// Processes all requests of a message, in order. Requests that were processed before are found committed. A failure does not keep the other requests from being processed, except where they would fail alike.
    async fn process(&self, delivery: Delivery, requests: Vec<Request>, slot: ArrivalSlot) -> ProcessedMessage {
        let (mut result, mut failed_span) = (Ok(()), Span::none());
        for request in requests {
            let span = request_span(&request);
            let Err(failure) = self.process_request(request, &slot).instrument(span.clone()).await else {
                continue;
            };
            let concerns_all = failure.cause.concerns_all_requests();
            if concerns_all || takes_precedence(&failure, &result) {
                (result, failed_span) = (Err(failure), span);
            }
            if concerns_all {
                break;
            }
        }
        drop(slot);
        ProcessedMessage { delivery, result, span: failed_span }
    }

    async fn process_request(&self, request: Request, slot: &ArrivalSlot) -> Result<(), Failure> {
        let is_profile = matches!(request, Request::Profile(_));
        let outcome = self.pipeline.handle(request, slot).await?;
        self.pipeline.ports.meter.record_request(if is_profile { "profile" } else { outcome.name() });
        match outcome {
            Outcome::Committed(_) => {} // each event has a log line of its own
            Outcome::Rejected(reason) => tracing::info!(reason = reason.message, "rejected"),
            Outcome::Ignored(reason) => tracing::debug!(reason, "ignored"),
            other => tracing::info!("{}", other.name()),
        }
        Ok(())
    }

    /// Tells the queue how the lease ends: acknowledge, retry, defer, release or dead letter.
    async fn settle(&self, processed: ProcessedMessage) -> Result<SettledMessage, QueueError> {
        let ProcessedMessage { delivery, result, span } = processed;
        let settlement = self.settlement(&result, &delivery).await;
        if result.is_ok() {
            self.breaker.message_processed();
        }
        span.in_scope(|| self.record(&result, &settlement, &delivery));
        let mut settled = SettledMessage {
            id: delivery.id.clone(),
            is_final: matches!(settlement, Settlement::Acknowledge | Settlement::DeadLetter { .. }),
            is_throttled: result.is_err_and(|failure| failure.cause.class() == Class::Throttled),
        };
        loop {
            match self.queue.settle(delivery.clone(), settlement.clone()).await {
                Ok(()) => break,
                Err(QueueError::LeaseLost(_)) => {
                    // Another worker has the message and will find it committed.
                    settled.is_final = false;
                    break;
                }
                Err(QueueError::Dependency(DependencyError::AccessDenied(reason))) => {
                    self.breaker.pause(Cause::AccessDenied, &reason);
                    self.breaker.wait_until_closed().await;
                }
                // The queue itself is down: settled once it answers again.
                Err(_) if self.breaker.is_open_after_check().await => self.breaker.wait_until_closed().await,
                Err(error) => return Err(error),
            }
        }
        Ok(settled)
    }

    /// Returns how the lease ends. During an outage the message is released without an attempt, because it is not at fault.
    async fn settlement(&self, result: &Result<(), Failure>, delivery: &Delivery) -> Settlement {
        match result {
            Err(failure) if failure.cause.may_be_outage() && self.breaker.is_open_after_check().await => {
                Settlement::Release
            }
            Err(Failure { cause, message }) if cause.is_outage() => {
                self.breaker.pause(*cause, message);
                Settlement::Release
            }
            _ => self.config.retry_policy.settlement(result, delivery, self.pipeline.ports.clock.now()),
        }
    }

    /// Counts and logs the settlement.
    fn record(&self, result: &Result<(), Failure>, settlement: &Settlement, delivery: &Delivery) {
        let Ports { meter, clock, .. } = &self.pipeline.ports;
        let (name, delay) = match settlement {
            Settlement::Acknowledge => ("done", None),
            Settlement::Retry(delay) => ("retry", Some(*delay)),
            Settlement::Defer(delay) => ("wait", Some(*delay)),
            Settlement::Release => ("release", Some(Duration::ZERO)),
            Settlement::DeadLetter { .. } => ("dead", None),
        };
        meter.record_settlement(name);
        let Err(failure) = result else { return };
        let (cause, seconds) = (failure.cause.code(), delay.map(|delay| delay.as_millis() as f64 / 1000.0));
        match (failure.cause.class(), settlement) {
            (_, Settlement::DeadLetter { .. }) => tracing::error!(cause, %failure, "moved to the dead letters"),
            (_, Settlement::Release) => {
                meter.record_retry(match failure.cause {
                    Cause::AccessDenied => RetryClass::AccessDenied,
                    _ => RetryClass::Unavailable,
                });
                tracing::warn!(cause, %failure, "outage: released without counting an attempt");
            }
            (Class::NotYet, _) => {
                meter.record_retry(RetryClass::NotYet);
                if delivery.age(clock.now()) < LOGGED_WAIT {
                    tracing::info!(cause, %failure, seconds, "deferred: not available yet");
                } else {
                    tracing::debug!(cause, %failure, seconds, "deferred: not available yet");
                }
            }
            (Class::Blocked, _) => {
                meter.record_retry(RetryClass::NotYet);
                tracing::warn!(cause, %failure, seconds, "deferred without counting an attempt until the log level is raised");
            }
            (Class::Throttled, _) => {
                meter.record_retry(RetryClass::Throttled);
                tracing::warn!(cause, %failure, seconds, "throttled: deferred without counting an attempt");
            }
            _ => {
                meter.record_retry(RetryClass::Transient);
                tracing::warn!(cause, %failure, seconds, "failed: will retry");
            }
        }
    }
}

/// Returns whether this failure decides about the message instead of an earlier one: a failure that time heals takes precedence over
/// one that needs an operator, so that the message is delivered again while that helps any of its requests.
fn takes_precedence(failure: &Failure, earlier: &Result<(), Failure>) -> bool {
    let needs_operator = |failure: &Failure| failure.cause.class() == Class::Poison;
    earlier.as_ref().err().is_none_or(|earlier| needs_operator(earlier) && !needs_operator(failure))
}

/// Returns the span whose fields every log line about the request has.
fn request_span(request: &Request) -> Span {
    let span = tracing::info_span!("request", image = field::Empty, key = field::Empty);
    let (image, key) = match request {
        Request::Photo(photo) => (Some(&photo.image), Some(&photo.key)),
        Request::Removed(removed) => (Some(&removed.image), Some(&removed.key)),
        Request::Delete(delete) => (Some(&delete.image), None),
        Request::Profile(profile) => (None, Some(&profile.key)),
        Request::Ignored { .. } | Request::Malformed(_) => (None, None),
    };
    if let Some(image) = image {
        span.record("image", field::display(image));
    }
    if let Some(key) = key {
        span.record("key", key.as_str());
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failure_counts_unless_a_later_one_heals_with_time() {
        let failed = |cause| Failure::new(cause, "x");
        assert!(takes_precedence(&failed(Cause::NotTheirs), &Ok(())));
        assert!(takes_precedence(&failed(Cause::NoImageRow), &Err(failed(Cause::NotTheirs))));
        assert!(!takes_precedence(&failed(Cause::NotTheirs), &Err(failed(Cause::NoImageRow))));
        assert!(!takes_precedence(&failed(Cause::NoObject), &Err(failed(Cause::NoImageRow))));
        assert!(!takes_precedence(&failed(Cause::Fault), &Err(failed(Cause::NotTheirs))));
    }
}
