//! The messages that this process holds.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sparks_engine::{Delivery, QueueError};

/// A message that is ours for a while.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// The queue it came from.
    pub url: String,
    /// Until when.
    pub until: Instant,
    /// Its group, where it has one.
    pub group: Option<String>,
}

/// All leases of this process, by receipt.
#[derive(Debug)]
pub(super) struct Leases {
    held: Mutex<HashMap<String, Lease>>,
    visibility: Duration,
}

impl Leases {
    pub fn new(visibility: Duration) -> Self {
        Self { held: Mutex::default(), visibility }
    }

    pub fn begin(&self, receipt: &str, lease: Lease) {
        self.lock().insert(receipt.to_owned(), lease);
    }

    /// The lease on the message, if it has not run out and nobody has ended it.
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

    /// Forgets leases that ran out long ago.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain(|_, lease| lease.until + self.visibility > now);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
