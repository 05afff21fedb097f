//! The leases on messages that this process has received and not settled.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sparks_engine::{Delivery, QueueError};

/// A message in flight.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// The URL of the queue that delivered it.
    pub url: String,
    /// The end of the visibility timeout.
    pub until: Instant,
    /// The message group, in a FIFO queue.
    pub group: Option<String>,
    /// The number of the copy; 0 for the message itself, `None` for a copy that a release without numbers has sent.
    pub copy: Option<u32>,
}

impl Lease {
    /// Returns the number of a copy that replaces the message.
    pub fn next_copy(&self) -> Option<u32> {
        self.copy.map(|copy| copy + 1)
    }
}

/// All leases of this process, by receipt.
#[derive(Debug)]
pub(super) struct Leases {
    held: Mutex<HashMap<String, Lease>>,
    visibility_timeout: Duration,
}

impl Leases {
    pub fn new(visibility_timeout: Duration) -> Self {
        Self { held: Mutex::default(), visibility_timeout }
    }

    pub fn begin(&self, receipt: &str, lease: Lease) {
        self.lock().insert(receipt.to_owned(), lease);
    }

    /// Returns the lease on the message, unless it has expired or ended.
    pub fn held(&self, delivery: &Delivery) -> Result<Lease, QueueError> {
        let lease = self.lock().get(&delivery.receipt).filter(|lease| lease.until > Instant::now()).cloned();
        lease.ok_or_else(|| QueueError::LeaseLost(delivery.id.clone()))
    }

    pub fn extend(&self, receipt: &str, until: Instant) {
        if let Some(lease) = self.lock().get_mut(receipt) {
            lease.until = until;
        }
    }

    pub fn end(&self, receipt: &str) {
        self.lock().remove(receipt);
    }

    /// Drops leases that expired more than a visibility timeout ago.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain(|_, lease| lease.until + self.visibility_timeout > now);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
