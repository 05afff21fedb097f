//! The clock, passed in so that a run can be replayed.

use std::time::{SystemTime, UNIX_EPOCH};

use sparks_domain::Timestamp;

/// Returns the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
    }
}
