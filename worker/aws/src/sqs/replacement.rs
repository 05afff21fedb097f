//! Replacing a message: by a copy in the queue, or by a dead letter.
//!
//! SQS cannot move a message: its replacement is sent, then the message is deleted. Where only the deletion fails, the message is
//! delivered again beside its replacement, and would be replaced again. So copies are numbered, each process remembers the
//! highest number of a message that it has seen, and deletes lower ones instead of delivering them. While a deletion fails, no
//! further message is replaced: the number of copies stays bounded by the number of messages in flight.

use std::time::Duration;

use sparks_engine::{Delivery, QueueError};

use super::{LEASE_LOST_CODES, SqsQueue, leases::Lease, seconds, sqs_message};
use crate::{
    names::{deduplication_id, is_fifo},
    retry::{backoff, with_retry},
};

/// The longest delay of a message that SQS supports: 15 minutes.
const MAX_DELAY: Duration = Duration::from_secs(900);
/// Retries of the deletion of a replaced message: about a second in all.
const DELETION_RETRIES: usize = 6;

impl SqsQueue {
    /// Replaces the message by a copy with the same ID, delivered after this delay, without counting an attempt.
    pub(super) async fn replace_by_copy(
        &self,
        delivery: &Delivery,
        lease: &Lease,
        after: Duration,
    ) -> Result<(), QueueError> {
        let attempts = delivery.receives.saturating_sub(1);
        let url = self.queues.waiting.as_deref().unwrap_or(&self.queues.work);
        if self.replaced.is_replaced(&delivery.id, lease.copy) {
            return self.delete_replaced(delivery, lease).await;
        }
        // SQS cannot delay single messages of a FIFO queue, and a copy would queue behind its own message group. So the message
        // itself is delivered again when its visibility timeout ends; also while replaced messages cannot be deleted.
        if is_fifo(url) || self.delete_undeleted().await.is_err() {
            return self.change_visibility(delivery, lease, after).await;
        }
        let copy = lease.next_copy();
        let send = self.client.send_message().queue_url(url).message_body(&delivery.body);
        let send = send.delay_seconds(seconds(after, MAX_DELAY));
        let send = send.set_message_attributes(Some(sqs_message::copy_attributes(delivery, copy, attempts)?));
        with_retry(|| send.clone().send()).await?;
        self.replaced.record(&delivery.id, copy);
        self.delete_replaced(delivery, lease).await
    }

    /// Deletes a message whose replacement was sent, with retries: otherwise it is delivered again.
    async fn delete_replaced(&self, delivery: &Delivery, lease: &Lease) -> Result<(), QueueError> {
        let mut backoff = backoff().take(DELETION_RETRIES);
        loop {
            match (self.delete(delivery, lease).await, backoff.next()) {
                (Err(QueueError::Dependency(_)), Some(pause)) => tokio::time::sleep(pause).await,
                (Err(error @ QueueError::Dependency(_)), None) => {
                    self.replaced.add_undeleted(&lease.url, &delivery.receipt);
                    return Err(error);
                }
                (done, _) => {
                    self.replaced.remove_undeleted(&delivery.receipt);
                    return done;
                }
            }
        }
    }

    /// Deletes the replaced messages that could not be deleted before. Fails while that is not possible.
    async fn delete_undeleted(&self) -> Result<(), QueueError> {
        for (url, receipt) in self.replaced.undeleted() {
            match self.deletions.delete(&url, &receipt).await {
                Err(error) if !error.has_code(&LEASE_LOST_CODES) => return Err(error.into()),
                _ => self.replaced.remove_undeleted(&receipt),
            }
        }
        Ok(())
    }

    /// Replaces the message by a dead letter.
    pub(super) async fn move_to_dead_letters(
        &self,
        delivery: &Delivery,
        lease: &Lease,
        cause: &str,
        reason: &str,
    ) -> Result<(), QueueError> {
        if self.replaced.is_replaced(&delivery.id, lease.copy) {
            return self.delete_replaced(delivery, lease).await;
        }
        self.delete_undeleted().await?;
        let (dead, fifo) = (&self.queues.dead, is_fifo(&self.queues.dead));
        let send = self.client.send_message().queue_url(dead).message_body(&delivery.body);
        // Each in a message group of its own: SQS delivers no other message of a group while one is in flight, and all of them
        // must be listed.
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(&delivery.id.0)));
        let copy = lease.next_copy();
        let deduplication = format!("{}/{}", delivery.id.0, delivery.receives);
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(&deduplication)));
        let send =
            send.set_message_attributes(Some(sqs_message::dead_letter_attributes(delivery, lease, cause, reason)?));
        with_retry(|| send.clone().send()).await?;
        self.replaced.record(&delivery.id, copy);
        self.delete_replaced(delivery, lease).await
    }
}
