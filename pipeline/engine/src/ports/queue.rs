//! Work to do, kept until it is settled.

use std::time::Duration;

use async_trait::async_trait;
use sparks_domain::Timestamp;

/// A durable queue: a message is received under a lease, and settled once.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Puts a message on the queue. A repeat with the same deduplication ID, while the first is unsettled, adds nothing.
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError>;

    /// At most `most` messages, oldest first, leased to this process. Empty when there is nothing to do now.
    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError>;

    /// Keeps the lease for another visibility timeout.
    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError>;

    /// Ends the lease.
    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError>;

    /// How much there is to do.
    async fn depth(&self) -> Result<Depth, QueueError>;
}

/// What could not be done, kept for a human.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// All letters, oldest first.
    async fn list(&self) -> Result<Vec<DeadLetter>, QueueError>;
}

/// A message's name in its queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub String);

/// A message under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub id: MessageId,
    /// What it says.
    pub body: String,
    /// How often it has been received, this time included.
    pub receives: u32,
    /// Proof of the lease.
    pub receipt: String,
}

/// How a lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The work is done.
    Done,
    /// Somebody shall try again, not before this long.
    Retry(Duration),
    /// Nobody shall try again until a human says so.
    DeadLetter {
        /// Why.
        reason: String,
    },
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages anybody may receive now.
    pub waiting: u64,
    /// Messages under lease.
    pub leased: u64,
    /// Messages to be tried later.
    pub delayed: u64,
    /// Dead letters.
    pub dead: u64,
}

/// A message that could not be worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its name.
    pub id: MessageId,
    /// What it says.
    pub body: String,
    /// Why it died.
    pub reason: String,
    /// When it died.
    pub died: Timestamp,
    /// How often it had been received.
    pub receives: u32,
}

/// Why the queue did not answer.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Trying later may help.
    #[error("the queue is not available: {0}")]
    Unavailable(String),
    /// The lease ran out and somebody else has the message: forget it.
    #[error("the lease on message {} is lost", .0.0)]
    LeaseLost(MessageId),
}
