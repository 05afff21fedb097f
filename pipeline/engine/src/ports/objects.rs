//! The bucket.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sparks_domain::Timestamp;

use super::DependencyError;

/// Stores originals, variants and crops.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Returns the object if it has at most this many bytes.
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError>;

    /// Stores the object atomically. Returns whether it was written.
    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError>;

    /// Deletes the object; succeeds where it does not exist.
    async fn delete(&self, key: &str) -> Result<(), ObjectsError>;

    /// Deletes the object if it has this version; succeeds where it does not.
    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError>;

    /// Returns the metadata of the object if it exists.
    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError>;

    /// Returns at most `most` objects with this prefix after `after`, by key.
    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError>;

    /// Checks that objects can be read and stored.
    async fn check(&self) -> Result<(), ObjectsError>;
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// The key.
    pub key: String,
    /// The size.
    pub bytes: u64,
    /// The time it was stored.
    pub modified: Timestamp,
}

/// An object and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The body.
    pub bytes: Vec<u8>,
    /// The ETag.
    pub version: String,
}

/// The metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// The size.
    pub bytes: u64,
    /// The ETag.
    pub version: String,
    /// The SHA-256 of the body in hexadecimal, where the bucket knows it: [`Objects::put`] stores it, other programs may not.
    pub sha256: Option<String>,
    /// The time it was stored, which S3 truncates to seconds.
    pub modified: Timestamp,
}

/// Returns the SHA-256 of a body in hexadecimal.
pub fn sha256(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The HTTP headers stored with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// `Content-Type`.
    pub content_type: &'static str,
    /// `Cache-Control`.
    pub cache_control: &'static str,
}

impl Content {
    /// Creates the headers of an image, which never changes under its key.
    pub fn image(content_type: &'static str) -> Self {
        Self { content_type, cache_control: "max-age=31536000" }
    }
}

/// What `put` does with an existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutMode {
    /// Replace it.
    Replace,
    /// Keep it.
    IfAbsent,
    /// Replace it if it has this version. An absent object is not stored.
    IfVersion(String),
}

/// Returns the key if every bucket can hold it: distinct keys name distinct objects, and none leads out of a data folder.
pub fn object_key(key: &str) -> Result<&str, ObjectsError> {
    let is_name = |part: &str| !["", ".", ".."].contains(&part);
    let fits = key.split('/').all(is_name) && !key.contains(['\\', '\0']) && key.len() <= MAX_KEY_BYTES;
    fits.then_some(key).ok_or_else(|| ObjectsError::BadKey(key.to_owned()))
}

/// S3's maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 1024;

/// Errors of the bucket.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The object does not exist.
    #[error("object {0} does not exist")]
    NotFound(String),
    /// The object is larger than asked for.
    #[error("object {key} has {bytes} bytes, more than the limit of {most}")]
    TooLarge {
        /// The key.
        key: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The key is invalid or leads out of the bucket.
    #[error("{0:?} is not an object key")]
    BadKey(String),
    /// Access to this one object is denied, while others are readable. The owner of the object must grant it.
    #[error("object {key}: access denied to this object alone: {reason}")]
    Forbidden {
        /// The key.
        key: String,
        /// The answer of the bucket.
        reason: String,
    },
    /// The bucket failed.
    #[error("object {key}: {error}")]
    Dependency {
        /// The key.
        key: String,
        /// The failure.
        error: DependencyError,
    },
}
