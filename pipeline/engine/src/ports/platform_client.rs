//! The uploads that the photo platform makes, for load tests and the embedded inbox.

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};

use super::{Content, ObjectsError, StoreError};

/// Uploads as the platform does: an original into the bucket, a row into the table. Never used while a photo is processed.
#[async_trait]
pub trait PlatformClient: Send + Sync {
    /// Stores an original, replacing an earlier one. Returns its version.
    async fn put_original(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError>;

    /// Creates the row unless it exists. Returns whether it was created.
    async fn create_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError>;

    /// Returns whether the bucket sends an event notification for each upload, so that the uploader need not send a message.
    async fn has_upload_notifications(&self) -> Result<bool, ObjectsError>;
}
