//! Intervals and timeouts of the inbox.

use std::time::Duration;

/// Intervals and timeouts of the inbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct InboxTiming {
    /// Interval between two scans.
    pub poll_interval: Duration,
    /// Interval between two scans while files are waiting.
    pub busy_poll_interval: Duration,
    /// A file is checked once it has not changed for this long.
    pub stable_after: Duration,
    /// An incomplete file is uploaded as it is once it has not changed for this long.
    pub final_after: Duration,
    /// Delay before a failed operation is retried.
    pub retry_delay: Duration,
    /// Maximum time for uploads before the next scan.
    pub max_upload_time: Duration,
}

impl Default for InboxTiming {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(1),
            busy_poll_interval: Duration::from_millis(100),
            stable_after: Duration::from_secs(2),
            final_after: Duration::from_secs(30),
            retry_delay: Duration::from_secs(10),
            max_upload_time: Duration::from_secs(1),
        }
    }
}
