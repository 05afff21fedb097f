//! Work in SQS, standard and FIFO.
//!
//! SQS counts every receive, keeps no time that a message was first seen, and takes any receipt for granted. So what has to
//! wait, and is no attempt, goes back as a copy that carries its own count, name and time; and a lease is what this process
//! got and has not lost: a receipt that ran out or was used is not offered to SQS again.

mod deletions;
mod lease;
mod letters;
mod message;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    types::{MessageSystemAttributeName, QueueAttributeName},
};
use sparks_engine::{Cause, Delivery, Depth, MessageId, Queue, QueueError, Settlement};

use self::{
    deletions::Deletions,
    lease::{Lease, Leases},
    message::{Envelope, GAVE_UP},
};
use crate::{
    connect::Connection,
    names::{deduplication_id, is_fifo},
    trouble::patiently,
};

/// Which queues there are, by their URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues {
    /// Where work comes from.
    pub work: String,
    /// Where copies wait that a FIFO queue cannot put off: a standard queue.
    pub waiting: Option<String>,
    /// Where dead letters go.
    pub dead: String,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A lease that is not extended ends after this: whole seconds.
    pub visibility: Duration,
    /// How long to wait for a message: whole seconds, at most 20.
    pub poll: Duration,
}

/// A queue in the cloud.
pub struct SqsQueue {
    client: Client,
    queues: Queues,
    timing: Timing,
    max_deaths: u32,
    leases: Leases,
    deletions: Deletions,
    /// Whoever looks through the dead letters has them all for a while: one at a time.
    reading: tokio::sync::Mutex<Option<letters::Hand>>,
}

/// As many messages as one request gets.
const MOST: usize = 10;
/// The longest that a message can be put off.
const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// The longest that a lease can be.
const LONGEST_LEASE: Duration = Duration::from_secs(43_200);
/// What SQS calls a lease that is none.
const LOST: [&str; 5] = [
    "ReceiptHandleIsInvalid",
    "AWS.SimpleQueueService.MessageNotInflight",
    "MessageNotInflight",
    "InvalidParameterValue",
    "InvalidIdFormat",
];

impl SqsQueue {
    /// Works on these queues. What waits, is received so often and never settled is a dead letter; in the queue of work
    /// SQS itself sees to that. Must be called within a runtime.
    pub fn new(connection: &Connection, queues: Queues, timing: Timing, max_deaths: u32) -> Self {
        let client = connection.sqs();
        let deletions = Deletions::start(client.clone());
        let leases = Leases::new(timing.visibility);
        Self { client, queues, timing, max_deaths, leases, deletions, reading: tokio::sync::Mutex::default() }
    }

    /// The URL of a queue.
    pub async fn url(connection: &Connection, name: &str) -> Result<String, QueueError> {
        if name.starts_with("https://") || name.starts_with("http://") {
            return Ok(name.to_owned());
        }
        let client = connection.sqs();
        match patiently(|| client.get_queue_url().queue_name(name).send()).await {
            Ok(answer) => answer.queue_url.ok_or_else(|| QueueError::Unavailable(format!("queue {name} has no URL"))),
            Err(trouble) if trouble.is(&["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"]) => {
                Err(QueueError::Unavailable(format!("there is no queue {name}: make it with `sparks setup`")))
            }
            Err(trouble) => Err(trouble.in_place(&format!("queue {name}")).into()),
        }
    }

    /// How long one poll lasts: where there are two queues, neither is to hold up the other.
    fn poll(&self) -> Duration {
        if self.queues.waiting.is_some() { self.timing.poll.min(Duration::from_secs(1)) } else { self.timing.poll }
    }

    async fn receive_from(&self, url: &str, most: usize, poll: Duration) -> Result<Vec<Delivery>, QueueError> {
        let (mut deliveries, mut poll) = (Vec::new(), poll);
        while deliveries.len() < most {
            let wanted = (most - deliveries.len()).min(MOST);
            let receive = || {
                self.client
                    .receive_message()
                    .queue_url(url)
                    .max_number_of_messages(i32::try_from(wanted).unwrap_or(1))
                    .wait_time_seconds(seconds(poll, poll))
                    .visibility_timeout(seconds(self.timing.visibility, LONGEST_LEASE))
                    .message_system_attribute_names(MessageSystemAttributeName::All)
                    .message_attribute_names("All")
                    .send()
            };
            let received = patiently(receive).await?.messages.unwrap_or_default();
            let until = Instant::now() + self.timing.visibility;
            let got = received.len();
            for message in received {
                let Some(envelope) = Envelope::open(message) else { continue };
                let lease = Lease { url: url.to_owned(), until, group: envelope.group.clone() };
                if self.is_deadly(url, &envelope) {
                    self.give_up(envelope, &lease).await;
                    continue;
                }
                self.leases.begin(&envelope.delivery.receipt, lease);
                deliveries.push(envelope.delivery);
            }
            // What is left over comes with the next call; there is no use in waiting for it.
            poll = Duration::ZERO;
            if got < wanted {
                break;
            }
        }
        Ok(deliveries)
    }

    /// Whether every worker that had it died. The letters of a FIFO queue are in a FIFO queue, and SQS moves nothing there
    /// from the standard one in which copies wait: so it is for whoever receives it once too often.
    fn is_deadly(&self, url: &str, envelope: &Envelope) -> bool {
        self.queues.waiting.as_deref() == Some(url) && envelope.counted > self.max_deaths
    }

    /// Does what SQS does with such a message elsewhere. Where that fails, it comes again.
    async fn give_up(&self, Envelope { delivery, counted, .. }: Envelope, lease: &Lease) {
        // Up to the last who died of it, however often it comes: so a letter that is sent again is known for the same.
        let receives = delivery.receives - counted + self.max_deaths;
        let delivery = Delivery { receives, ..delivery };
        if let Err(error) = self.bury(&delivery, lease, Cause::WorkerDied.code(), GAVE_UP).await {
            tracing::warn!(message_id = %delivery.id.0, %error, "workers die of a message that cannot be buried");
        }
    }

    /// Sends a copy that is the same message to whoever receives it, and no attempt the more.
    async fn send_copy(&self, delivery: &Delivery, lease: &Lease, after: Duration) -> Result<(), QueueError> {
        let spent = delivery.receives.saturating_sub(1);
        let url = self.queues.waiting.as_deref().unwrap_or(&self.queues.work);
        if is_fifo(url) {
            // Nothing is put off there, and a copy would stand behind its own group: it comes again when its lease ends.
            return self.change_visibility(delivery, lease, after).await;
        }
        let send = self.client.send_message().queue_url(url).message_body(&delivery.body);
        let send = send.delay_seconds(seconds(after, LONGEST_DELAY));
        let send = send.set_message_attributes(Some(message::copied(delivery, spent)?));
        patiently(|| send.clone().send()).await?;
        self.delete(delivery, lease).await
    }

    async fn delete(&self, delivery: &Delivery, lease: &Lease) -> Result<(), QueueError> {
        match self.deletions.delete(&lease.url, &delivery.receipt).await {
            Err(trouble) if trouble.is(&LOST) => Err(QueueError::LeaseLost(delivery.id.clone())),
            done => Ok(done?),
        }
    }

    async fn change_visibility(&self, delivery: &Delivery, lease: &Lease, to: Duration) -> Result<(), QueueError> {
        let change = || {
            let change = self.client.change_message_visibility().queue_url(&lease.url);
            change.receipt_handle(&delivery.receipt).visibility_timeout(seconds(to, LONGEST_LEASE)).send()
        };
        match patiently(change).await {
            Err(trouble) if trouble.is(&LOST) => Err(QueueError::LeaseLost(delivery.id.clone())),
            done => Ok(done.map(drop)?),
        }
    }

    async fn bury(&self, delivery: &Delivery, lease: &Lease, cause: &str, reason: &str) -> Result<(), QueueError> {
        let (dead, fifo) = (&self.queues.dead, is_fifo(&self.queues.dead));
        let send = self.client.send_message().queue_url(dead).message_body(&delivery.body);
        // Each in a group of its own, so that all of them can be listed.
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(&delivery.id.0)));
        let once = format!("{}/{}", delivery.id.0, delivery.receives);
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(&once)));
        let send = send.set_message_attributes(Some(message::buried(delivery, lease.group.as_deref(), cause, reason)?));
        patiently(|| send.clone().send()).await?;
        self.delete(delivery, lease).await
    }

    async fn counts(&self, url: &str) -> Result<[u64; 3], QueueError> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Waiting, ApproximateNumberOfMessagesDelayed as Delayed,
            ApproximateNumberOfMessagesNotVisible as Leased,
        };
        let names = [Waiting, Leased, Delayed];
        let get = || self.client.get_queue_attributes().queue_url(url).set_attribute_names(Some(names.to_vec())).send();
        let found = patiently(get).await?.attributes.unwrap_or_default();
        Ok(names.map(|name| found.get(&name).and_then(|count| count.parse().ok()).unwrap_or_default()))
    }
}

#[async_trait]
impl Queue for SqsQueue {
    /// A FIFO queue drops what was sent under the same name within five minutes; a standard one delivers it again.
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        let (url, fifo) = (&self.queues.work, is_fifo(&self.queues.work));
        let id = message::new_id();
        let send = self.client.send_message().queue_url(url).message_body(body);
        let send = send.set_message_group_id(fifo.then(|| deduplication_id(deduplication)));
        let send = send.set_message_deduplication_id(fifo.then(|| deduplication_id(deduplication)));
        let send = send.set_message_attributes(Some(message::named(&id, deduplication)?));
        patiently(|| send.clone().send()).await?;
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

    fn waits(&self) -> Duration {
        self.poll()
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let lease = self.leases.held(delivery)?;
        let until = Instant::now() + self.timing.visibility;
        self.change_visibility(delivery, &lease, self.timing.visibility).await?;
        self.leases.extend(&delivery.receipt, until);
        Ok(())
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let lease = self.leases.held(&delivery)?;
        match settlement {
            Settlement::Done => self.delete(&delivery, &lease).await,
            Settlement::Retry(after) => self.change_visibility(&delivery, &lease, after).await,
            Settlement::Wait(after) => self.send_copy(&delivery, &lease, after).await,
            Settlement::Release => self.send_copy(&delivery, &lease, Duration::ZERO).await,
            Settlement::DeadLetter { cause, reason } => self.bury(&delivery, &lease, cause.code(), &reason).await,
        }?;
        self.leases.end(&delivery.receipt);
        Ok(())
    }

    /// What is put off by a lease counts as leased. SQS does not tell how old the oldest message is.
    async fn depth(&self) -> Result<Depth, QueueError> {
        let mut depth = Depth::default();
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

/// Whole seconds, rounded up, up to the most that is allowed.
fn seconds(duration: Duration, most: Duration) -> i32 {
    let whole = duration.min(most).as_millis().div_ceil(1000);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

fn refused(error: impl std::fmt::Display) -> QueueError {
    QueueError::Unavailable(error.to_string())
}
