//! What the platform does, for whoever plays its part.

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};

use super::{Content, ObjectsError, StoreError};

/// Uploads as the platform does: an original into the bucket, a row into the table. Never on the path of a photo.
#[async_trait]
pub trait Platform: Send + Sync {
    /// Stores an original over what there was. Says which version it is.
    async fn store(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError>;

    /// Makes the row, unless there is one, which stays as it is. Says whether it was made.
    async fn make_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError>;

    /// Whether storing an original is all it takes: somebody hears of it and sends the message.
    async fn tells(&self) -> Result<bool, ObjectsError>;
}
