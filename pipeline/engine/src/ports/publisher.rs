//! Telling others what has happened.

use async_trait::async_trait;
use serde_json::Value;

/// Publishes notices, each at least once, in any order.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Publishes all of them, or says why not; those already published may be published again.
    async fn publish(&self, notices: &[Notice]) -> Result<(), PublishError>;

    /// Whether notices can be published now.
    async fn check(&self) -> Result<(), PublishError> {
        Ok(())
    }
}

/// Something that others may want to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// To whom.
    pub topic: Topic,
    /// What subscribers filter by.
    pub event_type: String,
    /// The same for a repeat, so that topics which can may drop it.
    pub deduplication: String,
    /// Notices of one group keep their order, where topics can.
    pub group: String,
    /// What it says.
    pub body: Value,
}

/// Who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The platform, which waits for pictures.
    ThumbnailCompleted,
    /// Whoever wants to know what the log says.
    Events,
}

impl Topic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThumbnailCompleted => "thumbnail-completed",
            Self::Events => "events",
        }
    }
}

/// Why nothing was published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Trying later may help.
    #[error("cannot publish: {0}")]
    Unavailable(String),
    /// Whoever passes it on has too much to do: waiting helps, however long it takes.
    #[error("cannot publish yet: {0}")]
    Busy(String),
    /// We may not: whoever grants permissions can help. Nobody's message is at fault.
    #[error("cannot publish: not allowed: {0}")]
    Denied(String),
}

/// Nobody listens.
pub struct Silent;

#[async_trait]
impl Publisher for Silent {
    async fn publish(&self, _: &[Notice]) -> Result<(), PublishError> {
        Ok(())
    }
}
