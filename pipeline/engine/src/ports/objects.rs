//! The bucket.

use async_trait::async_trait;
use sparks_domain::Timestamp;

/// Holds originals and everything made of them.
#[async_trait]
pub trait Objects: Send + Sync {
    /// The object, if it has at most this many bytes.
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError>;

    /// Stores the object whole or not at all. Says whether it was written.
    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError>;

    /// Removes the object; one that is not there is removed already.
    async fn delete(&self, key: &str) -> Result<(), ObjectsError>;

    /// Whether the object is there, and how large it is.
    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError>;

    /// The objects whose key begins like this and comes after `after`, by key, at most `most`.
    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError>;

    /// Whether objects can be read and stored now.
    async fn check(&self) -> Result<(), ObjectsError>;
}

/// An object as a listing tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was stored.
    pub modified: Timestamp,
}

/// An object's body and the version it was read at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The body.
    pub bytes: Vec<u8>,
    /// Its eTag.
    pub version: String,
}

/// What browsers and caches are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The MIME type.
    pub content_type: &'static str,
    /// How long to keep it.
    pub cache_control: &'static str,
}

impl Content {
    /// A picture that never changes under its key.
    pub fn picture(content_type: &'static str) -> Self {
        Self { content_type, cache_control: "max-age=31536000" }
    }
}

/// What to do about an object that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it.
    Replace,
    /// Leave it.
    IfAbsent,
}

/// The key, if it is one that every bucket can hold: no two of them name the same object, and none leads out of the bucket.
pub fn object_key(key: &str) -> Result<&str, ObjectsError> {
    let is_name = |part: &str| !["", ".", ".."].contains(&part);
    let fits = key.split('/').all(is_name) && !key.contains(['\\', '\0']) && key.len() <= LONGEST_KEY;
    fits.then_some(key).ok_or_else(|| ObjectsError::BadKey(key.to_owned()))
}

/// Bytes in a key, as buckets limit them.
const LONGEST_KEY: usize = 1024;

/// Why an object could not be had or stored.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// There is none.
    #[error("there is no object {0}")]
    NotFound(String),
    /// It is larger than asked for.
    #[error("object {key} has {bytes} bytes, more than {most}")]
    TooLarge {
        /// The object.
        key: String,
        /// Its size.
        bytes: u64,
        /// What was asked for.
        most: u64,
    },
    /// A key that would leave the bucket.
    #[error("{0:?} is not an object key")]
    BadKey(String),
    /// This object is closed to us, and others beside it are not: whoever put it there can help.
    #[error("object {key} is not ours to have: {reason}")]
    Forbidden {
        /// The object.
        key: String,
        /// What the store says.
        reason: String,
    },
    /// We may not do this to any object: whoever grants permissions can help. Nobody's message is at fault.
    #[error("object {key}: not allowed: {reason}")]
    Denied {
        /// The object.
        key: String,
        /// What the store says.
        reason: String,
    },
    /// The store answers, and has too much to do: waiting helps, however long it takes.
    #[error("object {key}: too much to do: {reason}")]
    Busy {
        /// The object.
        key: String,
        /// What the store says.
        reason: String,
    },
    /// Trying later may help.
    #[error("object {key}: {reason}")]
    Unavailable {
        /// The object.
        key: String,
        /// What the store says.
        reason: String,
    },
}
