//! How long things take, and what is paid for.

use std::time::Duration;

/// Hears how long each stage of a photo took, and which services were called.
pub trait Meter: Send + Sync {
    /// A stage is over.
    fn stage(&self, stage: &'static str, took: Duration);

    /// A service that counts was called.
    fn call(&self, operation: &'static str);
}

/// Nobody measures.
pub struct Unmeasured;

impl Meter for Unmeasured {
    fn stage(&self, _: &'static str, _: Duration) {}

    fn call(&self, _: &'static str) {}
}
