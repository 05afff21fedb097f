//! Measurements of the pipeline.

use std::time::Duration;

/// Records the duration of pipeline stages and the calls of paid services.
pub trait Meter: Send + Sync {
    /// Records that a stage took this long.
    fn record_stage(&self, stage: &'static str, took: Duration);

    /// Records a call of a paid service.
    fn record_call(&self, operation: &'static str);
}

/// A meter that discards every measurement.
pub struct NoMeter;

impl Meter for NoMeter {
    fn record_stage(&self, _: &'static str, _: Duration) {}

    fn record_call(&self, _: &'static str) {}
}
