//! A message that nobody can work on, told to the human who finds it among the dead letters.

/// A message that asks for nothing we know, or for something nobody may ask for. Trying again does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// None of the forms we know.
    #[error("the message is none that we know: {0}")]
    NotAMessage(String),
    /// A key that is not called as its folder demands, or that no key may be called.
    #[error("the key {key:?} is not one we take: {reason}")]
    BadKey {
        /// The key, decoded; its beginning, if it is longer than a key can be.
        key: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// A message about somebody else's bucket.
    #[error(
        "the message is about the bucket {bucket:?} and ours is {ours:?}: route its events elsewhere, or change the setting \
         `bucket`"
    )]
    OtherBucket {
        /// The bucket of the message.
        bucket: String,
        /// Our own.
        ours: String,
    },
    /// A field that is missing, or holds what it cannot.
    #[error("the field `{field}` {reason}")]
    BadField {
        /// Where it is, seen from the message or its record.
        field: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// One of several records is malformed, and so is the message: a human must see it.
    #[error("record {number} of {records}: {malformed}")]
    InRecord {
        /// Which, from 1.
        number: usize,
        /// How many there are.
        records: usize,
        /// What is wrong with it.
        malformed: Box<Malformed>,
    },
}

impl Malformed {
    pub(super) fn bad_key(key: &str, reason: impl Into<String>) -> Self {
        let key = if key.len() > super::key::LONGEST { cut(key) } else { key.to_owned() };
        Self::BadKey { key, reason: reason.into() }
    }

    pub(super) fn bad_field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::BadField { field: field.into(), reason: reason.into() }
    }
}

/// A text of the sender's, short enough for a log line: a message may be a quarter of a megabyte in one field.
pub(super) fn cut(text: &str) -> String {
    const MOST: usize = 100;
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(MOST).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}
