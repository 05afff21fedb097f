//! Topics in memory.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sparks_engine::{Notification, PublishError, Publisher};

/// Remembers what was published. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryPublisher(Arc<Mutex<BTreeSet<String>>>);

impl MemoryPublisher {
    /// Returns the deduplication IDs of all notifications.
    pub fn published(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Publisher for MemoryPublisher {
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError> {
        let mut published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        published.extend(notifications.iter().map(|notification| notification.deduplication.clone()));
        Ok(())
    }
}
