//! Dead letters in an SQS queue of their own.
//!
//! SQS cannot read a message without receiving it, which hides it from other readers for a visibility timeout. So dead letters
//! are leased to be read, and released afterwards.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName};
use sparks_engine::{DeadLetter, DeadLetters, MessageId, QueueError};

use super::{
    MAX_BATCH, MAX_VISIBILITY_TIMEOUT, SqsQueue, invalid_request, seconds,
    sqs_message::{self, ReceivedSqsMessage},
};
use crate::{
    names::{deduplication_id, is_fifo},
    retry::with_retry,
};

/// The visibility timeout of leased dead letters, and its extension for each of them.
const LEASE: Duration = Duration::from_secs(30);
const LEASE_PER_LETTER: Duration = Duration::from_millis(50);
/// Leases count as expired this long before they do, so that an operation that has begun ends in time.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// Attempts to find a dead letter that another reader may have leased, and the pause between them.
const TAKE_ATTEMPTS: usize = 20;
const TAKE_PAUSE: Duration = Duration::from_millis(500);

/// Dead letters held under a visibility timeout, in the order they were sent. Two may have the same message ID: a worker that
/// crashed between sending the dead letter and deleting the message left a duplicate.
pub(super) struct LeasedLetters {
    letters: BTreeMap<(MessageId, String), ReceivedSqsMessage>,
    until: Instant,
}

impl LeasedLetters {
    fn put(&mut self, letter: ReceivedSqsMessage) {
        self.letters.insert((letter.delivery.id.clone(), letter.sqs_id().to_owned()), letter);
    }

    fn take(&mut self, id: &MessageId) -> Option<ReceivedSqsMessage> {
        let key = self.letters.range((id.clone(), String::new())..).next().map(|(key, _)| key.clone());
        self.letters.remove(&key.filter(|(found, _)| found == id)?)
    }

    fn page(&self, after: Option<&MessageId>, most: usize) -> Vec<DeadLetter> {
        let later = self.letters.iter().filter(|((id, _), _)| after.is_none_or(|after| id > after));
        later.take(most).map(|(_, letter)| letter.to_dead_letter()).collect()
    }
}

impl SqsQueue {
    /// Leases all dead letters, long enough to read and process that many.
    async fn lease_letters(&self) -> Result<LeasedLetters, QueueError> {
        let depth: u64 = self.counts(&self.queues.dead).await?.iter().sum();
        let each = LEASE_PER_LETTER.saturating_mul(u32::try_from(depth).unwrap_or(u32::MAX));
        let lease = LEASE.saturating_add(each).min(MAX_VISIBILITY_TIMEOUT);
        let mut leased = LeasedLetters { letters: BTreeMap::new(), until: Instant::now() + lease - LEASE_MARGIN };
        loop {
            let receive = || {
                self.client
                    .receive_message()
                    .queue_url(&self.queues.dead)
                    .max_number_of_messages(i32::try_from(MAX_BATCH).unwrap_or(1))
                    // Short polling queries only a subset of the SQS servers and may miss messages.
                    .wait_time_seconds(seconds(self.timing.poll, Duration::from_secs(1)))
                    .visibility_timeout(seconds(lease, lease))
                    .message_system_attribute_names(MessageSystemAttributeName::All)
                    .message_attribute_names("All")
                    .send()
            };
            let received = match with_retry(receive).await {
                Ok(answer) => answer.messages.unwrap_or_default(),
                Err(error) => {
                    // Otherwise they stay hidden for the visibility timeout.
                    let _ = self.release_letters(leased.letters.into_values()).await;
                    return Err(error.into());
                }
            };
            let before = leased.letters.len();
            // A letter that is received twice is held by its latest receipt.
            received.into_iter().filter_map(ReceivedSqsMessage::parse).for_each(|letter| leased.put(letter));
            // If all of them were received before, leases have expired: without this check the loop would not end.
            if leased.letters.len() == before {
                return Ok(leased);
            }
        }
    }

    /// Leases the dead letters again if the visibility timeout has passed.
    async fn renew_lease(&self, leased: &mut LeasedLetters) -> Result<(), QueueError> {
        if Instant::now() >= leased.until {
            *leased = self.lease_letters().await?;
        }
        Ok(())
    }

    /// Makes the letters visible to other readers.
    async fn release_letters(&self, letters: impl IntoIterator<Item = ReceivedSqsMessage>) -> Result<(), QueueError> {
        let letters: Vec<ReceivedSqsMessage> = letters.into_iter().collect();
        for letters in letters.chunks(MAX_BATCH) {
            let entry = |(n, letter): (usize, &ReceivedSqsMessage)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(n.to_string());
                entry.receipt_handle(&letter.delivery.receipt).visibility_timeout(0).build().map_err(invalid_request)
            };
            let entries = letters.iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>()?;
            let change = || {
                let change = self.client.change_message_visibility_batch().queue_url(&self.queues.dead);
                change.set_entries(Some(entries.clone())).send()
            };
            // Failed entries become visible when their visibility timeout ends.
            with_retry(change).await?;
        }
        Ok(())
    }

    /// Takes one letter and releases all others. Retries while another reader may have leased it.
    async fn take(
        &self,
        held: &mut Option<LeasedLetters>,
        id: &MessageId,
    ) -> Result<Option<ReceivedSqsMessage>, QueueError> {
        if let Some(leased) = held {
            self.renew_lease(leased).await?;
            let found = leased.take(id);
            if found.is_some() {
                return Ok(found);
            }
            // It may have arrived since, or be leased by another reader: all letters are leased again.
            leased.until = Instant::now();
            self.release_letters(std::mem::take(&mut leased.letters).into_values()).await?;
        }
        for _ in 0..TAKE_ATTEMPTS {
            let mut leased = self.lease_letters().await?;
            let found = leased.take(id);
            self.release_letters(leased.letters.into_values()).await?;
            let [_, in_flight, _] = self.counts(&self.queues.dead).await?;
            if found.is_some() || in_flight == 0 {
                return Ok(found);
            }
            tokio::time::sleep(TAKE_PAUSE).await;
        }
        Ok(None)
    }

    async fn delete_letter(&self, letter: &ReceivedSqsMessage) -> Result<(), QueueError> {
        Ok(self.deletions.delete(&self.queues.dead, &letter.delivery.receipt).await?)
    }
}

#[async_trait]
impl DeadLetters for SqsQueue {
    async fn list(&self, after: Option<&MessageId>, most: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let mut held = self.leased_letters.lock().await;
        if let Some(leased) = held.as_mut() {
            self.renew_lease(leased).await?;
            return Ok(leased.page(after, most));
        }
        let leased = self.lease_letters().await?;
        let page = leased.page(after, most);
        self.release_letters(leased.letters.into_values()).await?;
        Ok(page)
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let mut held = self.leased_letters.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(None) };
        let found = letter.to_dead_letter();
        match held.as_mut().filter(|leased| Instant::now() < leased.until) {
            Some(leased) => leased.put(letter),
            None => self.release_letters([letter]).await?,
        }
        Ok(Some(found))
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let mut held = self.leased_letters.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(None) };
        let (url, fifo) = (&self.queues.work, is_fifo(&self.queues.work));
        let sent = sqs_message::new_id();
        let send = self.client.send_message().queue_url(url).message_body(&letter.delivery.body);
        let group = letter.group.as_deref().unwrap_or(&letter.delivery.id.0);
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(group)));
        // Differs from the ID of the first send, which SQS remembers for five minutes; a replay that was interrupted has the
        // same one again.
        let deduplication = format!("{}/replayed", letter.delivery.id.0);
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(&deduplication)));
        let send = send.set_message_attributes(Some(sqs_message::new_message_attributes(&sent, letter.name())?));
        with_retry(|| send.clone().send()).await?;
        self.delete_letter(&letter).await?;
        Ok(Some(sent))
    }

    async fn discard(&self, id: &MessageId) -> Result<bool, QueueError> {
        let mut held = self.leased_letters.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(false) };
        self.delete_letter(&letter).await?;
        Ok(true)
    }

    async fn lease_all(&self) -> Result<(), QueueError> {
        let mut held = self.leased_letters.lock().await;
        if held.is_none() {
            *held = Some(self.lease_letters().await?);
        }
        Ok(())
    }

    async fn release_all(&self) -> Result<(), QueueError> {
        match self.leased_letters.lock().await.take() {
            // After the visibility timeout another reader may have leased them.
            Some(leased) if Instant::now() < leased.until => self.release_letters(leased.letters.into_values()).await,
            _ => Ok(()),
        }
    }
}
