//! What a message carries beside its body.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use sparks_domain::Timestamp;
use sparks_engine::{Cause, DeadLetter, Delivery, MessageId, QueueError};

use super::refused;

type Attributes = HashMap<String, MessageAttributeValue>;

const ID: &str = "sparks.id";
const SENT: &str = "sparks.sent";
const RECEIVES: &str = "sparks.receives";
const GROUP: &str = "sparks.group";
const CAUSE: &str = "sparks.cause";
const REASON: &str = "sparks.reason";
const DIED: &str = "sparks.died";
/// What the sender called it, for whoever sends it again.
pub(super) const NAME: &str = "sparks.name";

/// Why a letter is one that nobody buried.
pub(super) const GAVE_UP: &str = "no worker that had it ever settled it, so the queue gave up";
/// Reasons are for people.
const LONGEST_REASON: usize = 2000;

/// A message as it was received.
pub(super) struct Envelope {
    pub delivery: Delivery,
    /// Its group, where it has one.
    pub group: Option<String>,
    /// How often the queue has handed out this very copy.
    pub counted: u32,
    message: Message,
}

impl Envelope {
    /// Reads what the message carries; none where it lacks what every message has.
    pub fn open(message: Message) -> Option<Self> {
        let sent = number(&message, SENT).or_else(|| system(&message, System::SentTimestamp)?.parse().ok());
        let sent = sent.unwrap_or_default();
        let id = match text(&message, ID) {
            Some(id) => id.to_owned(),
            None => format!("{sent:013}-{}", message.message_id()?),
        };
        let counted: u32 = system(&message, System::ApproximateReceiveCount)?.parse().ok()?;
        let before = number(&message, RECEIVES).and_then(|before| u32::try_from(before).ok()).unwrap_or_default();
        let delivery = Delivery {
            id: MessageId(id),
            body: message.body().unwrap_or_default().to_owned(),
            receives: before + counted,
            sent: Timestamp::from_millis(sent),
            receipt: message.receipt_handle()?.to_owned(),
        };
        let group = text(&message, GROUP).or_else(|| system(&message, System::MessageGroupId)).map(str::to_owned);
        Some(Self { delivery, group, counted, message })
    }

    /// What the queue calls it, which no other message is called.
    pub fn queue_id(&self) -> &str {
        self.message.message_id().unwrap_or_default()
    }

    /// What the sender called it.
    pub fn name(&self) -> &str {
        text(&self.message, NAME).unwrap_or(&self.delivery.id.0)
    }

    /// The dead letter that it is. One that says nothing of itself was moved by the queue, because every worker that had it
    /// died.
    pub fn letter(&self) -> DeadLetter {
        let Delivery { id, body, sent, receives, .. } = self.delivery.clone();
        let died = number(&self.message, DIED).map(Timestamp::from_millis);
        let moved = system(&self.message, System::ApproximateFirstReceiveTimestamp).and_then(|time| time.parse().ok());
        let (cause, reason) = match (text(&self.message, CAUSE), text(&self.message, REASON)) {
            (Some(cause), reason) => (cause.to_owned(), reason.unwrap_or_default().to_owned()),
            (None, _) => (Cause::WorkerDied.code().to_owned(), GAVE_UP.to_owned()),
        };
        // What is read as a letter is counted by the queue as well, and is no attempt.
        let buried = number(&self.message, RECEIVES).and_then(|receives| u32::try_from(receives).ok());
        let receives = buried.filter(|_| died.is_some()).unwrap_or(receives);
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

/// A name that sorts by the time it was made.
pub(super) fn new_id() -> MessageId {
    MessageId(format!("{:013}-{:016x}", now(), fastrand::u64(..)))
}

/// What a new message carries.
pub(super) fn named(id: &MessageId, name: &str) -> Result<Attributes, QueueError> {
    attributes([(ID, id.0.clone()), (NAME, name.to_owned())], [])
}

/// What a copy carries, after so many attempts.
pub(super) fn copied(delivery: &Delivery, spent: u32) -> Result<Attributes, QueueError> {
    let numbers = [(SENT, delivery.sent.as_millis()), (RECEIVES, i64::from(spent))];
    attributes([(ID, delivery.id.0.clone())], numbers)
}

/// What a dead letter carries.
pub(super) fn buried(
    delivery: &Delivery,
    group: Option<&str>,
    cause: &str,
    reason: &str,
) -> Result<Attributes, QueueError> {
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
    let texts = [(ID, delivery.id.0.clone()), (CAUSE, cause.to_owned()), (REASON, reason)];
    let group = group.map(|group| (GROUP, group.to_owned()));
    let numbers = [(SENT, delivery.sent.as_millis()), (RECEIVES, i64::from(delivery.receives)), (DIED, now())];
    attributes(texts.into_iter().chain(group), numbers)
}

fn attributes(
    texts: impl IntoIterator<Item = (&'static str, String)>,
    numbers: impl IntoIterator<Item = (&'static str, i64)>,
) -> Result<Attributes, QueueError> {
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, "String", text));
    let numbers = numbers.into_iter().map(|(name, number)| (name, "Number", number.to_string()));
    let attribute = |(name, kind, value): (&str, &str, String)| {
        let value = MessageAttributeValue::builder().data_type(kind).string_value(value).build().map_err(refused)?;
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
