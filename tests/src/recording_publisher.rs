//! A publisher that records notifications for assertions.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use sparks_engine::{Notification, PublishError, Publisher, Topic};

/// Keeps every published notification, in order.
#[derive(Debug, Default)]
pub struct RecordingPublisher(Mutex<Vec<Notification>>);

impl RecordingPublisher {
    /// Returns all published notifications.
    pub fn notifications(&self) -> Vec<Notification> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the event types published to a topic, in order.
    pub fn event_types(&self, topic: Topic) -> Vec<String> {
        let published = self.notifications().into_iter().filter(|notification| notification.topic == topic);
        published.map(|notification| notification.event_type).collect()
    }
}

#[async_trait]
impl Publisher for RecordingPublisher {
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(notifications);
        Ok(())
    }
}
