//! The work queue and its dead letters.

use std::time::Duration;

use async_trait::async_trait;
use sparks_domain::Timestamp;

use super::DependencyError;
use crate::Cause;

/// A durable queue: a message is received under a lease and settled once.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends a message. A second one with the same deduplication ID is dropped while the first is unsettled, where the queue
    /// supports it.
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError>;

    /// Receives at most `most` messages, oldest first, leased to this process. Empty when none is visible within
    /// [`Queue::wait_time`].
    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError>;

    /// Returns how long `receive` waits for messages (long polling). A caller may cancel it: a message that arrives at that moment
    /// is delivered again.
    fn wait_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Extends the lease by another visibility timeout.
    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError>;

    /// Ends the lease.
    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError>;

    /// Returns the number of messages.
    async fn depth(&self) -> Result<QueueDepth, QueueError>;
}

/// Messages that need an operator.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Returns at most `most` dead letters after this one, in the order they were sent.
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError>;

    /// Returns one dead letter.
    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError>;

    /// Sends the message to the work queue, and only then deletes the dead letter. Returns the new ID of the message; `None` where
    /// the dead letter does not exist.
    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError>;

    /// Deletes the dead letter. Returns whether it existed.
    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError>;

    /// Leases all dead letters at once, where reading needs a lease, so that many are read with few calls. Others do not see them
    /// until [`DeadLetters::release_all`] or the end of the visibility timeout.
    async fn lease_all(&self) -> Result<(), QueueError> {
        Ok(())
    }

    /// Releases what [`DeadLetters::lease_all`] leased.
    async fn release_all(&self) -> Result<(), QueueError> {
        Ok(())
    }
}

/// The ID of a message in its queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub String);

/// A message under a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The ID of the message.
    pub id: MessageId,
    /// The body.
    pub body: String,
    /// The number of receives that count as attempts, this one included.
    pub receives: u32,
    /// The time the message was sent.
    pub sent: Timestamp,
    /// The receipt that proves the lease.
    pub receipt: String,
}

impl Delivery {
    /// Returns the time since the message was sent.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(now.as_millis() - self.sent.as_millis()).unwrap_or_default())
    }
}

/// The end of a lease. See `failure.rs` for which failure leads to which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The work is done: delete the message.
    Acknowledge,
    /// The attempt failed and counts: deliver the message again after this delay.
    Retry(Duration),
    /// The work cannot be done yet: deliver the message again after this delay, without counting an attempt.
    Defer(Duration),
    /// Deliver the message to another worker at once, without counting an attempt.
    Release,
    /// Move the message to the dead letters.
    DeadLetter {
        /// The cause, whose code the dead letter stores.
        cause: Cause,
        /// The reason, for an operator.
        reason: String,
    },
}

/// The number of messages in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Messages that can be received now.
    pub waiting: u64,
    /// Messages in flight; where the queue cannot tell them apart, also those delayed after a failure.
    pub leased: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// Dead letters.
    pub dead: u64,
    /// The time since which the oldest receivable message has been waiting, where the queue reports it.
    pub oldest: Option<Timestamp>,
}

/// A message that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The ID of the message.
    pub id: MessageId,
    /// The body.
    pub body: String,
    /// The code of the cause; a code that this version does not know is passed through.
    pub cause: String,
    /// The reason, for an operator.
    pub reason: String,
    /// The time the message was sent.
    pub sent: Timestamp,
    /// The time it became a dead letter.
    pub died: Timestamp,
    /// The number of receives before that.
    pub receives: u32,
}

/// Errors of a queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue failed.
    #[error("queue {0}")]
    Dependency(#[from] DependencyError),
    /// The visibility timeout ended and another worker may have the message: stop working on it.
    #[error("lost the lease on message {}: its visibility timeout ended", .0.0)]
    LeaseLost(MessageId),
}
