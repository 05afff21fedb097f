//! Dead letters in a queue of their own. A queue cannot be looked into: whoever reads it has its messages for a while, and
//! gives them back.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName};
use sparks_engine::{DeadLetter, DeadLetters, MessageId, QueueError};

use super::{
    MOST, SqsQueue,
    message::{self, Envelope},
    refused, seconds,
};
use crate::{
    names::{deduplication_id, is_fifo},
    trouble::patiently,
};

/// How long the letters are ours while they are read. Nobody else sees them meanwhile.
const READING: Duration = Duration::from_secs(30);
/// Somebody else may be reading: how often to look again for a letter, and after what pause.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

impl SqsQueue {
    /// All letters, leased for a moment.
    async fn read_letters(&self) -> Result<Vec<Envelope>, QueueError> {
        let mut letters: Vec<Envelope> = Vec::new();
        loop {
            let receive = || {
                self.client
                    .receive_message()
                    .queue_url(&self.queues.dead)
                    .max_number_of_messages(i32::try_from(MOST).unwrap_or(1))
                    // Asking at once asks only some of the servers.
                    .wait_time_seconds(seconds(self.timing.poll, Duration::from_secs(1)))
                    .visibility_timeout(seconds(READING, READING))
                    .message_system_attribute_names(MessageSystemAttributeName::All)
                    .message_attribute_names("All")
                    .send()
            };
            let received = patiently(receive).await?.messages.unwrap_or_default();
            if received.is_empty() {
                letters.sort_by(|a, b| a.delivery.id.cmp(&b.delivery.id));
                return Ok(letters);
            }
            letters.extend(received.into_iter().filter_map(Envelope::open));
        }
    }

    /// Gives the letters back to whoever reads them next.
    async fn put_back(&self, letters: &[Envelope]) -> Result<(), QueueError> {
        for letters in letters.chunks(MOST) {
            let entry = |(n, letter): (usize, &Envelope)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(n.to_string());
                entry.receipt_handle(&letter.delivery.receipt).visibility_timeout(0).build().map_err(refused)
            };
            let entries = letters.iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>()?;
            let change = || {
                let change = self.client.change_message_visibility_batch().queue_url(&self.queues.dead);
                change.set_entries(Some(entries.clone())).send()
            };
            // Whatever fails comes back by itself.
            patiently(change).await?;
        }
        Ok(())
    }

    /// Takes the letter out of all others. While somebody else reads them, it may be theirs for a moment.
    async fn take(&self, id: &MessageId) -> Result<Option<Envelope>, QueueError> {
        for _ in 0..LOOKS {
            let mut letters = self.read_letters().await?;
            let found = letters.iter().position(|letter| letter.delivery.id == *id).map(|n| letters.swap_remove(n));
            self.put_back(&letters).await?;
            let [_, with_others, _] = self.counts(&self.queues.dead).await?;
            if found.is_some() || with_others == 0 {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(None)
    }

    async fn remove_letter(&self, letter: &Envelope) -> Result<(), QueueError> {
        Ok(self.deletions.delete(&self.queues.dead, &letter.delivery.receipt).await?)
    }
}

#[async_trait]
impl DeadLetters for SqsQueue {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let _alone = self.reading.lock().await;
        let letters = self.read_letters().await?;
        self.put_back(&letters).await?;
        let later = letters.iter().filter(|letter| after.is_none_or(|after| letter.delivery.id > *after));
        Ok(later.take(most).map(Envelope::letter).collect())
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let _alone = self.reading.lock().await;
        let letter = self.take(id).await?;
        self.put_back(letter.as_slice()).await?;
        Ok(letter.as_ref().map(Envelope::letter))
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let _alone = self.reading.lock().await;
        let Some(letter) = self.take(id).await? else { return Ok(None) };
        let (url, fifo) = (&self.queues.work, is_fifo(&self.queues.work));
        let sent = message::new_id();
        let send = self.client.send_message().queue_url(url).message_body(&letter.delivery.body);
        let group = letter.group.as_deref().unwrap_or(&letter.delivery.id.0);
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(group)));
        // Another name than the first time, which the queue may still remember; the same for a replay that was interrupted.
        let once_more = format!("{}/replayed", letter.delivery.id.0);
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(&once_more)));
        let send = send.set_message_attributes(Some(message::named(&sent, letter.name())?));
        patiently(|| send.clone().send()).await?;
        self.remove_letter(&letter).await?;
        Ok(Some(sent))
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        let _alone = self.reading.lock().await;
        let Some(letter) = self.take(id).await? else { return Ok(false) };
        self.remove_letter(&letter).await?;
        Ok(true)
    }
}
