//! How long things take.

use std::time::Duration;

/// Hears how long each stage of a photo took.
pub trait Meter: Send + Sync {
    /// A stage is over.
    fn stage(&self, stage: &'static str, took: Duration);
}

/// Nobody measures.
pub struct Unmeasured;

impl Meter for Unmeasured {
    fn stage(&self, _: &'static str, _: Duration) {}
}
