//! Notifications to other systems.

use async_trait::async_trait;
use serde_json::Value;

use super::DependencyError;

/// Publishes notifications, each at least once, in any order.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Publishes all of them. After an error some may have been published, and the caller publishes all again.
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError>;

    /// Checks that notifications can be published.
    async fn check(&self) -> Result<(), PublishError> {
        Ok(())
    }
}

/// A message to the subscribers of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The topic.
    pub topic: Topic,
    /// The event type that subscribers filter by.
    pub event_type: String,
    /// The deduplication ID: the same for a repeat.
    pub deduplication: String,
    /// The message group: the order is kept within a group, where the topic supports it.
    pub group: String,
    /// The body.
    pub body: Value,
}

/// The topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The variants of a photo are stored; the platform subscribes to it.
    ThumbnailCompleted,
    /// Every event of the log.
    Events,
}

impl Topic {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThumbnailCompleted => "thumbnail-completed",
            Self::Events => "events",
        }
    }
}

/// Errors of publishing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The topic failed.
    #[error("failed to publish: {0}")]
    Dependency(#[from] DependencyError),
}

/// A publisher that discards every notification.
pub struct NoPublisher;

#[async_trait]
impl Publisher for NoPublisher {
    async fn publish(&self, _: &[Notification]) -> Result<(), PublishError> {
        Ok(())
    }
}
