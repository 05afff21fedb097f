//! The story of a message: receive, parse, process, settle.
//!
//! `run/mod.rs` calls it in a loop; what a failure means for the message is in the engine's `failure.rs`.

mod circuit_breaker;
mod lease_extender;

use std::{sync::Arc, time::Duration};

use sparks_domain::Timestamp;
use sparks_engine::{
    ArrivalOrder, ArrivalSlot, Cause, Class, Clock, Delivery, DependencyError, Failure, MessageId, Outcome, Pipeline,
    Queue, QueueError, Request, RetryPolicy, Settlement, parse_message,
};
use tokio::sync::Mutex;
use tracing::{Instrument, Span, field};

pub use circuit_breaker::CircuitBreaker;
use lease_extender::LeaseExtender;

use crate::telemetry::metrics::Metrics;

/// Receives, processes and settles messages. Clones share the arrival order.
#[derive(Clone)]
pub struct Consumer {
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The pipeline that processes requests.
    pub pipeline: Arc<Pipeline>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Detects outages; without it every failure is attributed to its message.
    pub breaker: Option<CircuitBreaker>,
    /// The metrics.
    pub metrics: Metrics,
    /// The name of the bucket.
    pub bucket: Arc<str>,
    /// The visibility timeout of a message.
    pub visibility: Duration,
    /// How often and for how long a message is tried.
    pub retry_policy: RetryPolicy,
    /// The order in which messages were received.
    pub arrival_order: Arc<Mutex<ArrivalOrder>>,
}

/// A received message under its lease.
pub struct ReceivedMessage {
    /// The message.
    pub delivery: Delivery,
    slot: ArrivalSlot,
}

/// A message that was processed and settled.
pub struct SettledMessage {
    /// The message.
    pub id: MessageId,
    /// Whether it is acknowledged or a dead letter, so that it is not delivered again.
    pub is_final: bool,
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
    /// Receives at most `most` messages. No other receive runs meanwhile, so that slots are in the order of the queue.
    pub async fn receive(&self, most: usize) -> Result<Vec<ReceivedMessage>, QueueError> {
        let order = self.arrival_order.lock().await;
        let deliveries = self.queue.receive(most).await?;
        Ok(deliveries.into_iter().map(|delivery| ReceivedMessage { delivery, slot: order.slot() }).collect())
    }

    /// Parses, processes and settles one message.
    pub async fn handle(&self, message: ReceivedMessage) -> Result<SettledMessage, QueueError> {
        let ReceivedMessage { delivery, slot } = message;
        let span = tracing::info_span!("message", message_id = %delivery.id.0, receives = delivery.receives);
        async {
            let processed = match parse_message(&delivery.body, &self.bucket) {
                Ok(requests) => self.process(delivery, requests, slot).await,
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

    /// Processes all requests of a message, in order, while its lease is extended. Requests that were processed before are found
    /// committed. A failure does not keep the other requests from being processed, except where they would fail alike.
    async fn process(&self, delivery: Delivery, requests: Vec<Request>, slot: ArrivalSlot) -> ProcessedMessage {
        let lease = LeaseExtender::start(Arc::clone(&self.queue), delivery.clone(), self.visibility);
        let (mut result, mut failed_span) = (Ok(()), Span::none());
        for request in requests {
            let span = request_span(&request);
            let Err(failure) = self.process_request(request, delivery.sent, &slot).instrument(span.clone()).await
            else {
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
        drop((slot, lease));
        ProcessedMessage { delivery, result, span: failed_span }
    }

    async fn process_request(&self, request: Request, sent: Timestamp, slot: &ArrivalSlot) -> Result<(), Failure> {
        let is_profile = matches!(request, Request::Profile(_));
        let outcome = self.pipeline.handle(request, sent, slot).await?;
        self.metrics.record_photo(if is_profile { "profile" } else { outcome.name() });
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
        if let (Ok(()), Some(breaker)) = (&result, &self.breaker) {
            breaker.access_granted();
        }
        span.in_scope(|| self.record(&result, &settlement, delivery.age(self.clock.now())));
        let (id, is_final) =
            (delivery.id.clone(), matches!(settlement, Settlement::Acknowledge | Settlement::DeadLetter { .. }));
        loop {
            match self.queue.settle(delivery.clone(), settlement.clone()).await {
                Ok(()) => return Ok(SettledMessage { id, is_final }),
                // Another worker has the message and will find it committed.
                Err(QueueError::LeaseLost(_)) => return Ok(SettledMessage { id, is_final: false }),
                Err(QueueError::Dependency(DependencyError::AccessDenied(reason))) if self.report_denied(&reason) => {
                    self.wait_until_available().await;
                }
                Err(error) => match &self.breaker {
                    // The queue itself is down: settled once it answers again.
                    Some(breaker) if breaker.is_open_after_check().await => breaker.wait_until_closed().await,
                    _ => return Err(error),
                },
            }
        }
    }

    /// Returns how the lease ends. During an outage the message is released without an attempt, because it is not at fault.
    async fn settlement(&self, result: &Result<(), Failure>, delivery: &Delivery) -> Settlement {
        match result {
            Err(failure) if failure.cause.may_be_outage() && self.is_outage().await => {
                self.metrics.record_retry("unavailable");
                Settlement::Release
            }
            Err(Failure { cause: Cause::AccessDenied, message }) if self.report_denied(message) => {
                self.metrics.record_retry("denied");
                Settlement::Release
            }
            _ => self.retry_policy.settlement(result, delivery, self.clock.now()),
        }
    }

    async fn is_outage(&self) -> bool {
        match &self.breaker {
            Some(breaker) => breaker.is_open_after_check().await,
            None => false,
        }
    }

    /// Opens the circuit breaker for a missing permission. Returns false without a breaker: then it is a failure like others.
    fn report_denied(&self, reason: &str) -> bool {
        self.breaker.iter().for_each(|breaker| breaker.access_denied(reason));
        self.breaker.is_some()
    }

    async fn wait_until_available(&self) {
        if let Some(breaker) = &self.breaker {
            breaker.wait_until_closed().await;
        }
    }

    /// Counts and logs the settlement.
    fn record(&self, result: &Result<(), Failure>, settlement: &Settlement, age: Duration) {
        let (name, delay) = match settlement {
            Settlement::Acknowledge => ("done", None),
            Settlement::Retry(delay) => ("retry", Some(*delay)),
            Settlement::Defer(delay) => ("wait", Some(*delay)),
            Settlement::Release => ("release", Some(Duration::ZERO)),
            Settlement::DeadLetter { .. } => ("dead", None),
        };
        self.metrics.record_settlement(name);
        let Err(failure) = result else { return };
        let (cause, seconds) = (failure.cause.code(), delay.map(|delay| delay.as_millis() as f64 / 1000.0));
        match (failure.cause.class(), settlement) {
            (_, Settlement::DeadLetter { .. }) => tracing::error!(cause, %failure, "moved to the dead letters"),
            (Class::NotYet, _) => {
                self.metrics.record_retry("not_yet");
                if age < LOGGED_WAIT {
                    tracing::info!(cause, %failure, seconds, "deferred: not available yet");
                } else {
                    tracing::debug!(cause, %failure, seconds, "deferred: not available yet");
                }
            }
            (Class::Throttled, _) => {
                self.metrics.record_retry("busy");
                tracing::warn!(cause, %failure, seconds, "throttled: deferred without counting an attempt");
            }
            (_, Settlement::Retry(_)) => {
                self.metrics.record_retry("transient");
                tracing::warn!(cause, %failure, seconds, "failed: will retry");
            }
            _ => tracing::warn!(cause, %failure, "outage: released without counting an attempt"),
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
