//! An upload, with the row and the message that the platform creates for it.

use serde_json::json;
use sparks_domain::{Attributes, Email, ImageId, Key, Timestamp};

use crate::upload_event;

/// An uploaded file.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The name of the bucket, as in the message.
    pub bucket: String,
    /// The photo.
    pub image: ImageId,
    /// The uploader.
    pub uploader: Email,
    /// The key of the original.
    pub key: String,
    /// The version of the original.
    pub version: String,
    /// The size of the original.
    pub bytes: u64,
    /// The file name at the uploader.
    pub file_name: String,
    /// The time of the upload.
    pub when: Timestamp,
}

impl Upload {
    /// Returns the deduplication ID: two messages about the same version of a photo do not wait in the queue together.
    pub fn deduplication_id(&self) -> String {
        format!("{}/{}", self.image, self.version)
    }

    /// Returns the IMAGE row that the platform creates.
    pub fn row(&self) -> (Key, Attributes) {
        let row = json!({
            "entityType": "IMAGE",
            "assetType": "IMAGE",
            "imageId": self.image,
            "uploadedBy": self.uploader,
            "uploaded_datetime": self.when,
            "lastModified": self.when,
            "s3Key": self.key,
            "persons": [],
            "tags": [],
        });
        (Key::image(&self.image, &self.uploader), row.as_object().cloned().unwrap_or_default())
    }

    /// Returns the notification that S3 sends. The sequencer is the upload time, so a later upload of the same photo is a later
    /// version, even with the same content.
    pub fn message(&self) -> String {
        let sequencer = format!("{:016X}", self.when.as_millis());
        upload_event(&self.bucket, &self.key, self.bytes, &self.version, &sequencer, &self.file_name)
    }
}
