//! Received messages, and the attributes of messages that are sent.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, Delivery, MessageId, QueueError};

use super::{invalid_request, leases::Lease};

type Attributes = HashMap<String, MessageAttributeValue>;

const ID: &str = "sparks.id";
const SENT: &str = "sparks.sent";
const RECEIVES: &str = "sparks.receives";
const GROUP: &str = "sparks.group";
const COPY: &str = "sparks.copy";
const CAUSE: &str = "sparks.cause";
const REASON: &str = "sparks.reason";
const DIED: &str = "sparks.died";
/// The deduplication ID that the sender used. A replay keeps it.
pub(super) const NAME: &str = "sparks.name";

/// The reason of a dead letter that SQS moved by its redrive policy, or the worker for the waiting queue, which has none.
pub(super) const WORKERS_DIED: &str =
    "received too often and never settled: every worker that received it died or lost its lease";
/// Characters of a reason that are kept.
const MAX_REASON_CHARS: usize = 2000;

/// A message as SQS delivered it.
pub(super) struct ReceivedSqsMessage {
    pub delivery: Delivery,
    /// The message group, in a FIFO queue.
    pub group: Option<String>,
    /// The number of this copy of the message; 0 for the message itself, `None` for a copy that a release without numbers has sent.
    pub copy: Option<u32>,
    /// How often SQS has delivered this copy of the message.
    pub receives_of_copy: u32,
    message: Message,
}

impl ReceivedSqsMessage {
    /// Parses a message; none if a system attribute is missing that SQS gives every message.
    pub fn parse(message: Message) -> Option<Self> {
        let sent = number(&message, SENT).or_else(|| system(&message, System::SentTimestamp)?.parse().ok());
        let sent = sent.unwrap_or_default();
        let id = match text(&message, ID) {
            Some(id) => id.to_owned(),
            None => format!("{sent:013}-{}", message.message_id()?),
        };
        let receives_of_copy: u32 = system(&message, System::ApproximateReceiveCount)?.parse().ok()?;
        let count = |name| number(&message, name).and_then(|count| u32::try_from(count).ok());
        let (before, copy) = (count(RECEIVES), count(COPY));
        let copy = if before.is_none() { copy.or(Some(0)) } else { copy };
        let delivery = Delivery {
            id: MessageId(id),
            body: message.body().unwrap_or_default().to_owned(),
            receives: before.unwrap_or_default() + receives_of_copy,
            sent: Timestamp::from_millis(sent),
            receipt: message.receipt_handle()?.to_owned(),
        };
        let group = text(&message, GROUP).or_else(|| system(&message, System::MessageGroupId)).map(str::to_owned);
        Some(Self { delivery, group, copy, receives_of_copy, message })
    }

    /// Returns the message ID that SQS assigned, unique per copy.
    pub fn sqs_id(&self) -> &str {
        self.message.message_id().unwrap_or_default()
    }

    /// Returns the deduplication ID that the sender used.
    pub fn name(&self) -> &str {
        text(&self.message, NAME).unwrap_or(&self.delivery.id.0)
    }

    /// Converts to a dead letter. One without a cause was moved by the redrive policy of the work queue.
    pub fn to_dead_letter(&self) -> DeadLetter {
        let Delivery { id, body, sent, receives, .. } = self.delivery.clone();
        let died = number(&self.message, DIED).map(Timestamp::from_millis);
        let moved = system(&self.message, System::ApproximateFirstReceiveTimestamp).and_then(|time| time.parse().ok());
        let (cause, reason) = match (text(&self.message, CAUSE), text(&self.message, REASON)) {
            (Some(cause), reason) => (cause.to_owned(), reason.unwrap_or_default().to_owned()),
            (None, _) => (Cause::WorkerDied.code().to_owned(), WORKERS_DIED.to_owned()),
        };
        // SQS also counts receives of the dead letter, which are no attempts.
        let recorded = number(&self.message, RECEIVES).and_then(|receives| u32::try_from(receives).ok());
        let receives = recorded.filter(|_| died.is_some()).unwrap_or(receives);
        DeadLetter {
            id,
            body,
            cause,
            reason,
            sent,
            died: died.or(moved.map(Timestamp::from_millis)).unwrap_or(sent),
            receives,
        }
    }
}

/// Creates a message ID that sorts by time.
pub(super) fn new_id() -> MessageId {
    MessageId(format!("{:013}-{:016x}", now(), fastrand::u64(..)))
}

/// Returns the attributes of a new message.
pub(super) fn new_message_attributes(id: &MessageId, name: &str) -> Result<Attributes, QueueError> {
    attributes([(ID, id.0.clone()), (NAME, name.to_owned())], [])
}

/// Returns the attributes of the copy with this number that replaces the message, after this many attempts.
pub(super) fn copy_attributes(delivery: &Delivery, copy: Option<u32>, spent: u32) -> Result<Attributes, QueueError> {
    let numbers = [(SENT, delivery.sent.as_millis()), (RECEIVES, i64::from(spent))];
    attributes([(ID, delivery.id.0.clone())], numbers.into_iter().chain(copy_number(copy)))
}

fn copy_number(copy: Option<u32>) -> Option<(&'static str, i64)> {
    copy.map(|copy| (COPY, i64::from(copy)))
}

/// Returns the attributes of a dead letter. It has a number as a copy has: a redrive sends it to the queue as it is.
pub(super) fn dead_letter_attributes(
    delivery: &Delivery,
    lease: &Lease,
    cause: &str,
    reason: &str,
) -> Result<Attributes, QueueError> {
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
    let texts = [(ID, delivery.id.0.clone()), (CAUSE, cause.to_owned()), (REASON, reason)];
    let group = lease.group.clone().map(|group| (GROUP, group));
    let numbers = [(SENT, delivery.sent.as_millis()), (RECEIVES, i64::from(delivery.receives)), (DIED, now())];
    let numbers = numbers.into_iter().chain(copy_number(lease.next_copy()));
    attributes(texts.into_iter().chain(group), numbers)
}

fn attributes(
    texts: impl IntoIterator<Item = (&'static str, String)>,
    numbers: impl IntoIterator<Item = (&'static str, i64)>,
) -> Result<Attributes, QueueError> {
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, "String", text));
    let numbers = numbers.into_iter().map(|(name, number)| (name, "Number", number.to_string()));
    let attribute = |(name, kind, value): (&str, &str, String)| {
        let value =
            MessageAttributeValue::builder().data_type(kind).string_value(value).build().map_err(invalid_request)?;
        Ok((name.to_owned(), value))
    };
    texts.chain(numbers).map(attribute).collect()
}

fn text<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    message.message_attributes()?.get(name)?.string_value()
}

fn number(message: &Message, name: &str) -> Option<i64> {
    text(message, name)?.parse().ok()
}

fn system(message: &Message, name: System) -> Option<&str> {
    message.attributes()?.get(&name).map(String::as_str)
}

fn now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
