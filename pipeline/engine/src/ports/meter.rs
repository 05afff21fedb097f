//! Measurements of the pipeline and of the consumer.

use std::time::Duration;

/// Records what a worker does, for its metrics.
pub trait Meter: Send + Sync {
    /// Records that a stage took this long.
    fn record_stage(&self, stage: &'static str, took: Duration);

    /// Records a call of a paid service.
    fn record_call(&self, operation: &'static str);

    /// Records a request that is done, with the name of its outcome.
    fn record_request(&self, outcome: &'static str);

    /// Records how the lease on a message ended.
    fn record_settlement(&self, settlement: &'static str);

    /// Records a failure after which the message is delivered again.
    fn record_retry(&self, class: RetryClass);

    /// Records the messages in flight, the number that may be in flight at the moment, and the number of slots.
    fn record_concurrency(&self, in_flight: usize, limit: usize, slots: usize);
}

/// Why a message is delivered again, as metrics count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryClass {
    /// The attempt failed and counts.
    Transient,
    /// Another system has not created something yet.
    NotYet,
    /// A dependency is down.
    Unavailable,
    /// A dependency limits the rate of requests, or other workers committed first.
    Throttled,
    /// A permission is missing.
    AccessDenied,
}

impl RetryClass {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Transient, Self::NotYet, Self::Unavailable, Self::Throttled, Self::AccessDenied];

    /// Returns the label of the metric.
    pub fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::NotYet => "not_yet",
            Self::Unavailable => "unavailable",
            Self::Throttled => "busy",
            Self::AccessDenied => "denied",
        }
    }
}

/// A meter that discards every measurement.
pub struct NoMeter;

impl Meter for NoMeter {
    fn record_stage(&self, _: &'static str, _: Duration) {}

    fn record_call(&self, _: &'static str) {}

    fn record_request(&self, _: &'static str) {}

    fn record_settlement(&self, _: &'static str) {}

    fn record_retry(&self, _: RetryClass) {}

    fn record_concurrency(&self, _: usize, _: usize, _: usize) {}
}
