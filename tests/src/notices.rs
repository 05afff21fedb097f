//! Somebody who listens: what was published, so that tests can see it.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use sparks_engine::{Notice, PublishError, Publisher, Topic};

/// Keeps every notice, in order.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Vec<Notice>>);

impl Notices {
    /// Everything that was published.
    pub fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What subscribers of a topic would filter by, in order.
    pub fn types(&self, topic: Topic) -> Vec<String> {
        self.all().into_iter().filter(|notice| notice.topic == topic).map(|notice| notice.event_type).collect()
    }
}

#[async_trait]
impl Publisher for Notices {
    async fn publish(&self, notices: &[Notice]) -> Result<(), PublishError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(notices);
        Ok(())
    }
}
