//! The work queue on SQS, standard and FIFO.
//!
//! SQS counts every receive, resets the sent time when a message is sent again, and accepts expired receipt handles. So a
//! message that is deferred or released without counting an attempt is replaced by a copy, whose attributes hold its ID,
//! sent time and attempts; and this process tracks its leases itself and never uses an expired receipt handle.

mod dead_letters;
mod deletion_batcher;
mod leases;
mod sqs_message;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    types::{MessageSystemAttributeName, QueueAttributeName},
};
use sparks_engine::{Cause, Delivery, DependencyError, MessageId, Queue, QueueDepth, QueueError, Settlement};

use self::{
    deletion_batcher::DeletionBatcher,
    leases::{Lease, Leases},
    sqs_message::{ReceivedSqsMessage, WORKERS_DIED},
};
use crate::{
    connect::Connection,
    names::{deduplication_id, is_fifo},
    retry::with_retry,
};

/// The URLs of the queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// The work queue.
    pub work: String,
    /// The standard queue for delayed copies, beside a FIFO work queue: SQS cannot delay single messages of a FIFO queue.
    pub waiting: Option<String>,
    /// The dead-letter queue.
    pub dead: String,
}

/// Visibility timeout and long polling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The visibility timeout of received messages, in whole seconds.
    pub visibility_timeout: Duration,
    /// The wait time of long polling, in whole seconds: at most 20.
    pub poll: Duration,
}

/// A work queue with its dead-letter queue.
pub struct SqsQueue {
    client: Client,
    queues: QueueUrls,
    timing: Timing,
    max_crashes: u32,
    leases: Leases,
    deletions: DeletionBatcher,
    /// The dead letters that [`sparks_engine::DeadLetters::lease_all`] leased. The lock also serializes readers, who would hide
    /// dead letters from each other.
    leased_letters: tokio::sync::Mutex<Option<dead_letters::LeasedLetters>>,
}

/// Messages per request, as SQS limits them.
const MAX_BATCH: usize = 10;
/// The longest delay of a message that SQS supports: 15 minutes.
const MAX_DELAY: Duration = Duration::from_secs(900);
/// The longest visibility timeout that SQS supports: 12 hours.
const MAX_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(43_200);
/// Error codes of SQS for a receipt handle whose lease is lost.
const LEASE_LOST_CODES: [&str; 5] = [
    "ReceiptHandleIsInvalid",
    "AWS.SimpleQueueService.MessageNotInflight",
    "MessageNotInflight",
    "InvalidParameterValue",
    "InvalidIdFormat",
];

/// Error codes of SQS for a queue that does not exist: the AWS JSON protocol and the query protocol differ.
pub(crate) const QUEUE_MISSING_CODES: [&str; 2] = ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"];

impl SqsQueue {
    /// Creates the adapter of these queues. A message of the waiting queue that is received more than `max_crashes` times
    /// without being settled becomes a dead letter; for the work queue the redrive policy does that. Must be called within
    /// a runtime.
    pub fn new(connection: &Connection, queues: QueueUrls, timing: Timing, max_crashes: u32) -> Self {
        let client = connection.sqs();
        let deletions = DeletionBatcher::start(client.clone());
        let leases = Leases::new(timing.visibility_timeout);
        Self { client, queues, timing, max_crashes, leases, deletions, leased_letters: tokio::sync::Mutex::default() }
    }

    /// Returns the URL of a queue that is given by name or URL.
    pub async fn url(connection: &Connection, name: &str) -> Result<String, QueueError> {
        if name.starts_with("https://") || name.starts_with("http://") {
            return Ok(name.to_owned());
        }
        let client = connection.sqs();
        let unavailable = |message: String| QueueError::Dependency(DependencyError::Unavailable(message));
        match with_retry(|| client.get_queue_url().queue_name(name).send()).await {
            Ok(answer) => answer.queue_url.ok_or_else(|| unavailable(format!("queue {name} has no URL"))),
            Err(error) if error.has_code(&QUEUE_MISSING_CODES) => {
                Err(unavailable(format!("queue {name} does not exist; create it with `sparks setup`")))
            }
            Err(error) => Err(error.with_context(&format!("queue {name}")).into()),
        }
    }

    /// Returns the wait time of one poll: short if there are two queues, so that neither delays the other.
    fn poll(&self) -> Duration {
        if self.queues.waiting.is_some() { self.timing.poll.min(Duration::from_secs(1)) } else { self.timing.poll }
    }

    async fn receive_from(&self, url: &str, most: usize, poll: Duration) -> Result<Vec<Delivery>, QueueError> {
        let (mut deliveries, mut poll) = (Vec::new(), poll);
        while deliveries.len() < most {
            let wanted = (most - deliveries.len()).min(MAX_BATCH);
            let receive = || {
                self.client
                    .receive_message()
                    .queue_url(url)
                    .max_number_of_messages(i32::try_from(wanted).unwrap_or(1))
                    .wait_time_seconds(seconds(poll, poll))
                    .visibility_timeout(seconds(self.timing.visibility_timeout, MAX_VISIBILITY_TIMEOUT))
                    .message_system_attribute_names(MessageSystemAttributeName::All)
                    .message_attribute_names("All")
                    .send()
            };
            let received = with_retry(receive).await?.messages.unwrap_or_default();
            let until = Instant::now() + self.timing.visibility_timeout;
            let got = received.len();
            for message in received {
                let Some(message) = ReceivedSqsMessage::parse(message) else { continue };
                let lease = Lease { url: url.to_owned(), until, group: message.group.clone() };
                if self.exceeds_max_crashes(url, &message) {
                    self.dead_letter_after_crashes(message, &lease).await;
                    continue;
                }
                self.leases.begin(&message.delivery.receipt, lease);
                deliveries.push(message.delivery);
            }
            // Further requests only take messages that are visible now.
            poll = Duration::ZERO;
            if got < wanted {
                break;
            }
        }
        Ok(deliveries)
    }

    /// Returns whether a message of the waiting queue was delivered too often without being settled: its workers died. The
    /// waiting queue has no redrive policy, because the dead-letter queue of a FIFO queue is FIFO, and SQS requires the
    /// dead-letter queue of a standard queue to be standard.
    fn exceeds_max_crashes(&self, url: &str, message: &ReceivedSqsMessage) -> bool {
        self.queues.waiting.as_deref() == Some(url) && message.receives_of_copy > self.max_crashes
    }

    /// Does what the redrive policy does for the work queue. If it fails, the message is delivered again.
    async fn dead_letter_after_crashes(
        &self,
        ReceivedSqsMessage { delivery, receives_of_copy, .. }: ReceivedSqsMessage,
        lease: &Lease,
    ) {
        // Independent of how often this is retried, so that a FIFO queue drops a dead letter that is sent twice.
        let receives = delivery.receives - receives_of_copy + self.max_crashes;
        let delivery = Delivery { receives, ..delivery };
        if let Err(error) = self.move_to_dead_letters(&delivery, lease, Cause::WorkerDied.code(), WORKERS_DIED).await {
            tracing::warn!(
                service = "SQS",
                operation = "SendMessage",
                message_id = %delivery.id.0,
                receives,
                %error,
                "failed to dead-letter a message whose workers crashed; retried at its next delivery"
            );
        }
    }

    /// Replaces the message by a copy with the same ID, delivered after this delay, without counting an attempt.
    async fn replace_by_copy(&self, delivery: &Delivery, lease: &Lease, after: Duration) -> Result<(), QueueError> {
        let attempts = delivery.receives.saturating_sub(1);
        let url = self.queues.waiting.as_deref().unwrap_or(&self.queues.work);
        if is_fifo(url) {
            // SQS cannot delay single messages of a FIFO queue, and a copy would queue behind its own message group. So the
            // message itself is delivered again when its visibility timeout ends.
            return self.change_visibility(delivery, lease, after).await;
        }
        let send = self.client.send_message().queue_url(url).message_body(&delivery.body);
        let send = send.delay_seconds(seconds(after, MAX_DELAY));
        let send = send.set_message_attributes(Some(sqs_message::copy_attributes(delivery, attempts)?));
        with_retry(|| send.clone().send()).await?;
        self.delete(delivery, lease).await
    }

    async fn delete(&self, delivery: &Delivery, lease: &Lease) -> Result<(), QueueError> {
        match self.deletions.delete(&lease.url, &delivery.receipt).await {
            Err(error) if error.has_code(&LEASE_LOST_CODES) => Err(QueueError::LeaseLost(delivery.id.clone())),
            done => Ok(done?),
        }
    }

    async fn change_visibility(&self, delivery: &Delivery, lease: &Lease, to: Duration) -> Result<(), QueueError> {
        let change = || {
            let change = self.client.change_message_visibility().queue_url(&lease.url);
            change.receipt_handle(&delivery.receipt).visibility_timeout(seconds(to, MAX_VISIBILITY_TIMEOUT)).send()
        };
        match with_retry(change).await {
            Err(error) if error.has_code(&LEASE_LOST_CODES) => Err(QueueError::LeaseLost(delivery.id.clone())),
            done => Ok(done.map(drop)?),
        }
    }

    async fn move_to_dead_letters(
        &self,
        delivery: &Delivery,
        lease: &Lease,
        cause: &str,
        reason: &str,
    ) -> Result<(), QueueError> {
        let (dead, fifo) = (&self.queues.dead, is_fifo(&self.queues.dead));
        let send = self.client.send_message().queue_url(dead).message_body(&delivery.body);
        // Each in a message group of its own: SQS delivers no other message of a group while one is in flight, and all of them
        // must be listed.
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(&delivery.id.0)));
        let deduplication = format!("{}/{}", delivery.id.0, delivery.receives);
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(&deduplication)));
        let send = send.set_message_attributes(Some(sqs_message::dead_letter_attributes(
            delivery,
            lease.group.as_deref(),
            cause,
            reason,
        )?));
        with_retry(|| send.clone().send()).await?;
        self.delete(delivery, lease).await
    }

    async fn counts(&self, url: &str) -> Result<[u64; 3], QueueError> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Waiting, ApproximateNumberOfMessagesDelayed as Delayed,
            ApproximateNumberOfMessagesNotVisible as Leased,
        };
        let names = [Waiting, Leased, Delayed];
        let get = || self.client.get_queue_attributes().queue_url(url).set_attribute_names(Some(names.to_vec())).send();
        let found = with_retry(get).await?.attributes.unwrap_or_default();
        Ok(names.map(|name| found.get(&name).and_then(|count| count.parse().ok()).unwrap_or_default()))
    }
}

#[async_trait]
impl Queue for SqsQueue {
    /// A FIFO queue drops a message with the same deduplication ID for five minutes; a standard queue delivers it again.
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        let (url, fifo) = (&self.queues.work, is_fifo(&self.queues.work));
        let id = sqs_message::new_id();
        let send = self.client.send_message().queue_url(url).message_body(body);
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(deduplication)));
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(deduplication)));
        let send = send.set_message_attributes(Some(sqs_message::new_message_attributes(&id, deduplication)?));
        with_retry(|| send.clone().send()).await?;
        Ok(id)
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        self.leases.sweep();
        let mut deliveries = match &self.queues.waiting {
            Some(waiting) => self.receive_from(waiting, most, Duration::ZERO).await?,
            None => Vec::new(),
        };
        if deliveries.len() < most {
            let poll = if deliveries.is_empty() { self.poll() } else { Duration::ZERO };
            deliveries.extend(self.receive_from(&self.queues.work, most - deliveries.len(), poll).await?);
        }
        Ok(deliveries)
    }

    fn wait_time(&self) -> Duration {
        self.poll()
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let lease = self.leases.held(delivery)?;
        let until = Instant::now() + self.timing.visibility_timeout;
        self.change_visibility(delivery, &lease, self.timing.visibility_timeout).await?;
        self.leases.extend(&delivery.receipt, until);
        Ok(())
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let lease = self.leases.held(&delivery)?;
        match settlement {
            Settlement::Acknowledge => self.delete(&delivery, &lease).await,
            Settlement::Retry(after) => self.change_visibility(&delivery, &lease, after).await,
            Settlement::Defer(after) => self.replace_by_copy(&delivery, &lease, after).await,
            Settlement::Release => self.replace_by_copy(&delivery, &lease, Duration::ZERO).await,
            Settlement::DeadLetter { cause, reason } => {
                self.move_to_dead_letters(&delivery, &lease, cause.code(), &reason).await
            }
        }?;
        self.leases.end(&delivery.receipt);
        Ok(())
    }

    /// Counts messages that are delayed by a visibility timeout as leased. SQS does not return the age of the oldest message.
    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        let mut depth = QueueDepth::default();
        for url in [Some(&self.queues.work), self.queues.waiting.as_ref()].into_iter().flatten() {
            let [waiting, leased, delayed] = self.counts(url).await?;
            depth.waiting += waiting;
            depth.leased += leased;
            depth.delayed += delayed;
        }
        depth.dead = self.counts(&self.queues.dead).await?.iter().sum();
        Ok(depth)
    }
}

/// Returns whole seconds, rounded up, at most `max`.
fn seconds(duration: Duration, max: Duration) -> i32 {
    let whole = duration.min(max).as_millis().div_ceil(1000);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

fn invalid_request(error: impl std::fmt::Display) -> QueueError {
    QueueError::Dependency(DependencyError::Unavailable(error.to_string()))
}
