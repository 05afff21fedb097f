//! The work queue on SQS, standard and FIFO.
//!
//! SQS counts every receive, resets the sent time when a message is sent again, and accepts expired receipt handles. So a
//! message that is deferred or released without counting an attempt is replaced by a copy, whose attributes hold its ID,
//! sent time and attempts; and this process tracks its leases itself and never uses an expired receipt handle.

mod dead_letters;
mod deletion_batcher;
mod leases;
mod replaced_messages;
mod replacement;
mod sqs_message;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    types::{MessageSystemAttributeName, QueueAttributeName},
};
use sparks_engine::{Cause, Delivery, DependencyError, MessageId, Queue, QueueDepth, QueueError, Settlement};
use tokio::time::timeout;

use self::{
    deletion_batcher::DeletionBatcher,
    leases::{Lease, Leases},
    replaced_messages::ReplacedMessages,
    sqs_message::{ReceivedSqsMessage, WORKERS_DIED},
};
use crate::{
    connect::Connection,
    error::AwsError,
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
    replaced: ReplacedMessages,
    /// The dead letters that [`sparks_engine::DeadLetters::lease_all`] leased. The lock also serializes readers, who would hide
    /// dead letters from each other.
    leased_letters: tokio::sync::Mutex<Option<dead_letters::LeasedLetters>>,
}

/// Messages per request, as SQS limits them.
const MAX_BATCH: usize = 10;
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
        let (replaced, leased_letters) = (ReplacedMessages::default(), tokio::sync::Mutex::default());
        Self { client, queues, timing, max_crashes, leases, deletions, replaced, leased_letters }
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

    /// Receives messages from all queues, until there are `most` or a call fails.
    async fn receive_all(&self, most: usize, deliveries: &mut Vec<Delivery>) -> Result<(), QueueError> {
        if let Some(waiting) = &self.queues.waiting {
            self.receive_from(waiting, most, Duration::ZERO, deliveries).await?;
        }
        if deliveries.len() < most {
            let poll = if deliveries.is_empty() { self.poll() } else { Duration::ZERO };
            self.receive_from(&self.queues.work, most, poll, deliveries).await?;
        }
        Ok(())
    }

    /// Receives messages from this queue, until there are `most`. Messages that were received before must not wait for long, so
    /// that then a failing call is not retried.
    async fn receive_from(
        &self,
        url: &str,
        most: usize,
        mut poll: Duration,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<(), QueueError> {
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
            let answer = match deliveries.is_empty() {
                true => with_retry(receive).await,
                false => match timeout(self.timing.visibility_timeout / 4, receive()).await {
                    Ok(answer) => answer.map_err(AwsError::from),
                    Err(_) => Err(AwsError::new("SQS", "ReceiveMessage", None, "timeout: no response")),
                },
            };
            let received = answer?.messages.unwrap_or_default();
            let until = Instant::now() + self.timing.visibility_timeout;
            let got = received.len();
            for message in received {
                let Some(message) = ReceivedSqsMessage::parse(message) else { continue };
                let ReceivedSqsMessage { delivery, group, copy, .. } = &message;
                if self.replaced.is_replaced(&delivery.id, *copy) {
                    drop(self.deletions.start_deletion(url, &delivery.receipt));
                    continue;
                }
                let lease = Lease { url: url.to_owned(), until, group: group.clone(), copy: *copy };
                if *copy != Some(0) {
                    self.replaced.record(&delivery.id, *copy);
                }
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
        Ok(())
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
        let mut deliveries = Vec::new();
        match self.receive_all(most, &mut deliveries).await {
            Err(error) if deliveries.is_empty() => return Err(error),
            // The messages received so far are leased, and each receive counts as an attempt.
            Err(error) => tracing::warn!(%error, received = deliveries.len(), "failed to receive further messages"),
            Ok(()) => {}
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
