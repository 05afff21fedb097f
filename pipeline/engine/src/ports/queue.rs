//! Work to do, kept until it is settled.

use std::time::Duration;

use async_trait::async_trait;
use sparks_domain::Timestamp;

use crate::Cause;

/// A durable queue: a message is received under a lease, and settled once.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Puts a message on the queue. A repeat with the same deduplication ID, while the first is unsettled, adds nothing where
    /// the queue can know that.
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError>;

    /// At most `most` messages, oldest first, leased to this process. Empty when there is nothing to do now, or for as long as
    /// the queue waits.
    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError>;

    /// How long the queue waits for messages. Whoever receives from one that waits may give up at any time: what comes
    /// at that very moment comes again.
    fn waits(&self) -> Duration {
        Duration::ZERO
    }

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
    /// The letters after this one, in the order they were sent, at most `most`.
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError>;

    /// One letter.
    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError>;

    /// Sends the message again, and only then removes the letter. Says under which name it was sent; nothing where the
    /// letter is gone.
    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError>;

    /// Removes the letter for good. Says whether it was there.
    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError>;

    /// Keeps all letters at hand, where they must be leased to be read, so that whoever goes through many of them reads them
    /// once. Others may not see them until they are given back, or for as long as the lease lasts.
    async fn hold(&self) -> Result<(), QueueError> {
        Ok(())
    }

    /// Gives back what is at hand.
    async fn give_back(&self) -> Result<(), QueueError> {
        Ok(())
    }
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
    /// How often it has been received, this time included, as far as that counts as an attempt.
    pub receives: u32,
    /// When it was sent.
    pub sent: Timestamp,
    /// Proof of the lease.
    pub receipt: String,
}

impl Delivery {
    /// How long ago it was sent.
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(now.as_millis() - self.sent.as_millis()).unwrap_or_default())
    }
}

/// How a lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The work is done.
    Done,
    /// The attempt failed: somebody shall try again, not before this long.
    Retry(Duration),
    /// Something is not there yet: somebody shall look again after this long, and this was no attempt.
    Wait(Duration),
    /// Somebody else shall have it at once, and this was no attempt.
    Release,
    /// Nobody shall try again until a human says so.
    DeadLetter {
        /// What kind of reason.
        cause: Cause,
        /// Why.
        reason: String,
    },
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages anybody may receive now.
    pub waiting: u64,
    /// Messages under lease, and where the queue cannot tell, those that are put off after a failure.
    pub leased: u64,
    /// Messages to be tried later.
    pub delayed: u64,
    /// Dead letters.
    pub dead: u64,
    /// Since when the oldest of those that anybody may receive has been waiting, where the queue tells.
    pub oldest: Option<Timestamp>,
}

/// A message that could not be worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its name.
    pub id: MessageId,
    /// What it says.
    pub body: String,
    /// What kind of reason it died of; a name that this version does not know stays as it is.
    pub cause: String,
    /// Why it died.
    pub reason: String,
    /// When it was sent.
    pub sent: Timestamp,
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
    /// We may not: whoever grants permissions can help.
    #[error("not allowed: {0}")]
    Denied(String),
    /// The lease ran out and somebody else has the message: forget it.
    #[error("the lease on message {} is lost", .0.0)]
    LeaseLost(MessageId),
}
