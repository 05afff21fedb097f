//! Errors for messages that can never be processed. Operators read them in dead letters.

/// A message of an unknown form, or one that asks for something not allowed. A retry does not help. The wording is stored with dead
/// letters and fixed by `tests/golden/messages`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedMessage {
    /// The message has none of the known forms.
    #[error("the message is none that we know: {0}")]
    NotAMessage(String),
    /// The key does not have the form that its folder requires, or is invalid in every folder.
    #[error("the key {key:?} is not one we take: {reason}")]
    BadKey {
        /// The key, decoded and truncated to the maximum length of a key.
        key: String,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
    /// The message is about another bucket.
    #[error(
        "the message is about the bucket {bucket:?} and ours is {own_bucket:?}: route its events elsewhere, or change the \
         setting `bucket`"
    )]
    OtherBucket {
        /// The bucket of the message.
        bucket: String,
        /// The bucket of the worker.
        own_bucket: String,
    },
    /// A field is missing or has an invalid value.
    #[error("the field `{field}` {reason}")]
    BadField {
        /// The path of the field within the message or its record.
        field: String,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
    /// One of several records is malformed.
    #[error("record {number} of {records}: {malformed}")]
    InRecord {
        /// The number of the record, from 1.
        number: usize,
        /// The number of records in the message.
        records: usize,
        /// The error of the record.
        malformed: Box<MalformedMessage>,
    },
}

impl MalformedMessage {
    pub(super) fn bad_key(key: &str, reason: impl Into<String>) -> Self {
        let key = if key.len() > super::key::MAX_KEY_BYTES { truncate(key) } else { key.to_owned() };
        Self::BadKey { key, reason: reason.into() }
    }

    pub(super) fn bad_field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::BadField { field: field.into(), reason: reason.into() }
    }
}

/// Truncates a text of the message for logs: one field may be as large as a message, 256 KiB.
pub(super) fn truncate(text: &str) -> String {
    const MAX_CHARS: usize = 100;
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}
