//! A clock that a test sets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use sparks_domain::Timestamp;
use sparks_engine::{Clock, SystemClock};

/// A clock that stands still until it is advanced.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock at the current time.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(SystemClock.now().as_millis())))
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}
