//! A file that somebody gives us, as the platform knows it.

use serde_json::json;
use sparks_domain::{Attributes, Email, ImageId, Key, Timestamp};

use crate::upload_event;

/// A file that somebody gives us.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The bucket's name, as the message calls it.
    pub bucket: String,
    /// Its photo.
    pub image: ImageId,
    /// Who uploads it.
    pub uploader: Email,
    /// Where its original is stored.
    pub key: String,
    /// The original's version.
    pub version: String,
    /// Its size.
    pub bytes: u64,
    /// What its owner calls it.
    pub file_name: String,
    /// When it was uploaded.
    pub when: Timestamp,
}

impl Upload {
    /// What keeps two messages about the same thing from standing in the queue.
    pub fn deduplication(&self) -> String {
        format!("{}/{}", self.image, self.version)
    }

    /// The row that the platform makes of it.
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

    /// The message that S3 would send. A later upload of the same photo is a later version of it, even with the same content.
    pub fn message(&self) -> String {
        let sequencer = format!("{:016X}", self.when.as_millis());
        upload_event(&self.bucket, &self.key, self.bytes, &self.version, &sequencer, &self.file_name)
    }
}
