//! Dead letters in a queue of their own. A queue cannot be looked into: whoever reads it has its messages for a while, and
//! gives them back.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName};
use sparks_engine::{DeadLetter, DeadLetters, MessageId, QueueError};

use super::{
    LONGEST_LEASE, MOST, SqsQueue,
    message::{self, Envelope},
    refused, seconds,
};
use crate::{
    names::{deduplication_id, is_fifo},
    trouble::patiently,
};

/// How long the letters are ours while they are read and acted on, and how much longer for each of them. Nobody else sees them
/// meanwhile.
const READING: Duration = Duration::from_secs(30);
const READING_EACH: Duration = Duration::from_millis(50);
/// What is begun with a letter ends while it is ours.
const SPARE: Duration = Duration::from_secs(5);
/// Somebody else may be reading: how often to look again for a letter, and after what pause.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Letters that are ours for a while, in the order they were sent. Two may have one name, if whoever buried one died over it.
pub(super) struct Hand {
    letters: BTreeMap<(MessageId, String), Envelope>,
    until: Instant,
}

impl Hand {
    fn put(&mut self, letter: Envelope) {
        self.letters.insert((letter.delivery.id.clone(), letter.queue_id().to_owned()), letter);
    }

    fn take(&mut self, id: &MessageId) -> Option<Envelope> {
        let key = self.letters.range((id.clone(), String::new())..).next().map(|(key, _)| key.clone());
        self.letters.remove(&key.filter(|(name, _)| name == id)?)
    }

    fn page(&self, after: Option<&MessageId>, most: usize) -> Vec<DeadLetter> {
        let later = self.letters.iter().filter(|((id, _), _)| after.is_none_or(|after| id > after));
        later.take(most).map(|(_, letter)| letter.letter()).collect()
    }
}

impl SqsQueue {
    /// All letters, leased for as long as it takes to read so many and to do something to each.
    async fn read_letters(&self) -> Result<Hand, QueueError> {
        let depth: u64 = self.counts(&self.queues.dead).await?.iter().sum();
        let each = READING_EACH.saturating_mul(u32::try_from(depth).unwrap_or(u32::MAX));
        let lease = READING.saturating_add(each).min(LONGEST_LEASE);
        let mut hand = Hand { letters: BTreeMap::new(), until: Instant::now() + lease - SPARE };
        loop {
            let receive = || {
                self.client
                    .receive_message()
                    .queue_url(&self.queues.dead)
                    .max_number_of_messages(i32::try_from(MOST).unwrap_or(1))
                    // Asking at once asks only some of the servers.
                    .wait_time_seconds(seconds(self.timing.poll, Duration::from_secs(1)))
                    .visibility_timeout(seconds(lease, lease))
                    .message_system_attribute_names(MessageSystemAttributeName::All)
                    .message_attribute_names("All")
                    .send()
            };
            let received = patiently(receive).await?.messages.unwrap_or_default();
            let before = hand.letters.len();
            // One that comes again is ours by its last receipt.
            received.into_iter().filter_map(Envelope::open).for_each(|letter| hand.put(letter));
            // Where all come again, leases have run out, and there would be no end of it.
            if hand.letters.len() == before {
                return Ok(hand);
            }
        }
    }

    /// What is at hand, read again where it may be somebody else's by now.
    async fn renew(&self, hand: &mut Hand) -> Result<(), QueueError> {
        if Instant::now() >= hand.until {
            *hand = self.read_letters().await?;
        }
        Ok(())
    }

    /// Gives the letters back to whoever reads them next.
    async fn put_back(&self, letters: impl IntoIterator<Item = Envelope>) -> Result<(), QueueError> {
        let letters: Vec<Envelope> = letters.into_iter().collect();
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
    async fn take(&self, held: &mut Option<Hand>, id: &MessageId) -> Result<Option<Envelope>, QueueError> {
        if let Some(hand) = held {
            self.renew(hand).await?;
            let found = hand.take(id);
            if found.is_some() {
                return Ok(found);
            }
            // It may have died since, or be somebody else's: all are read anew.
            hand.until = Instant::now();
            self.put_back(std::mem::take(&mut hand.letters).into_values()).await?;
        }
        for _ in 0..LOOKS {
            let mut hand = self.read_letters().await?;
            let found = hand.take(id);
            self.put_back(hand.letters.into_values()).await?;
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
        let mut held = self.reading.lock().await;
        if let Some(hand) = held.as_mut() {
            self.renew(hand).await?;
            return Ok(hand.page(after, most));
        }
        let hand = self.read_letters().await?;
        let page = hand.page(after, most);
        self.put_back(hand.letters.into_values()).await?;
        Ok(page)
    }

    async fn letter(&self, id: &MessageId) -> Result<Option<DeadLetter>, QueueError> {
        let mut held = self.reading.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(None) };
        let found = letter.letter();
        match held.as_mut().filter(|hand| Instant::now() < hand.until) {
            Some(hand) => hand.put(letter),
            None => self.put_back([letter]).await?,
        }
        Ok(Some(found))
    }

    async fn replay(&self, id: &MessageId) -> Result<Option<MessageId>, QueueError> {
        let mut held = self.reading.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(None) };
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
        let mut held = self.reading.lock().await;
        let Some(letter) = self.take(&mut held, id).await? else { return Ok(false) };
        self.remove_letter(&letter).await?;
        Ok(true)
    }
    async fn hold(&self) -> Result<(), QueueError> {
        let mut held = self.reading.lock().await;
        if held.is_none() {
            *held = Some(self.read_letters().await?);
        }
        Ok(())
    }

    async fn give_back(&self) -> Result<(), QueueError> {
        match self.reading.lock().await.take() {
            // What may be somebody else's by now is not ours to give.
            Some(hand) if Instant::now() < hand.until => self.put_back(hand.letters.into_values()).await,
            _ => Ok(()),
        }
    }
}
