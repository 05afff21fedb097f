//! What the sender has done so far.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sparks_domain::Timestamp;

/// Uploads and messages sent so far, shared with the monitor.
#[derive(Default)]
pub struct SendProgress(Mutex<State>);

#[derive(Default)]
struct State {
    stored: Vec<Option<StoredOriginal>>,
    notified_at: Vec<Option<Timestamp>>,
    messages: u64,
}

/// The version and size of a stored original.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredOriginal {
    pub version: String,
    pub bytes: u64,
}

impl SendProgress {
    /// Creates an empty record for this many photos.
    pub fn new(photos: usize) -> Self {
        Self(Mutex::new(State { stored: vec![None; photos], notified_at: vec![None; photos], messages: 0 }))
    }

    /// Returns the time of each photo's first notification.
    pub fn notified_at(&self) -> Vec<Option<Timestamp>> {
        self.lock().notified_at.clone()
    }

    /// Returns the number of messages sent.
    pub fn messages(&self) -> u64 {
        self.lock().messages
    }

    pub(crate) fn set_stored(&self, n: usize, original: StoredOriginal) {
        self.lock().stored[n] = Some(original);
    }

    pub(crate) fn stored(&self, n: usize) -> StoredOriginal {
        self.lock().stored[n].clone().unwrap_or_default()
    }

    /// Records a notification at `now` and returns the time of the first one.
    pub(crate) fn set_notified(&self, n: usize, now: impl FnOnce() -> Timestamp) -> Timestamp {
        *self.lock().notified_at[n].get_or_insert_with(now)
    }

    pub(crate) fn count_message(&self) {
        self.lock().messages += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
