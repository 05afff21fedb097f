//! Uploads files to a data folder.

use std::{path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use sparks_domain::{Email, ImageId, RejectCode, Rejection, SourceObject, object_keys};
use sparks_embedded::{Embedded, FileObjects, Submission};
use sparks_engine::{Clock, Content, ImageProcessor, MessageId, Objects, Pipeline, PutMode, Upload};

use super::FileContents;

/// Uploads files to a data folder.
pub struct Uploader {
    /// The data folder.
    pub backend: Arc<Embedded>,
    /// The bucket's name.
    pub bucket: String,
    /// Reads the headers of files.
    pub image_processor: Arc<dyn ImageProcessor>,
    /// Records the rejection of files that are too large.
    pub pipeline: Arc<Pipeline>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The owner of the files.
    pub uploader: Email,
    /// The maximum size of a file.
    pub max_bytes: u64,
}

/// The result of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadResult {
    /// The image ID.
    pub image: ImageId,
    /// The deduplication ID of its message, by which a dead letter is found.
    pub deduplication_id: String,
    /// The status of the photo.
    pub status: UploadStatus,
}

/// The status of an uploaded photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadStatus {
    /// The photo was uploaded and processed before.
    Duplicate,
    /// The photo is processed once this message is settled.
    Queued(MessageId),
    /// The photo is rejected for this reason, which is in the event log.
    Rejected(String),
}

/// A file with its image ID, not uploaded yet.
pub struct PreparedUpload {
    upload: Upload,
    content: Content,
    bytes: Vec<u8>,
}

impl PreparedUpload {
    /// Returns the image ID.
    pub fn image(&self) -> &ImageId {
        &self.upload.image
    }

    /// Returns a result with this status.
    pub fn result(&self, status: UploadStatus) -> UploadResult {
        UploadResult { image: self.upload.image.clone(), deduplication_id: self.upload.deduplication_id(), status }
    }
}

impl Uploader {
    /// Uploads the contents of the file at this path, unless it was uploaded before or is too large.
    pub async fn upload(&self, path: &Path, contents: FileContents) -> anyhow::Result<UploadResult> {
        match contents {
            FileContents::Bytes(bytes) => self.submit(self.prepare(path, bytes)).await,
            FileContents::TooLarge { bytes, hash } => self.reject_too_large(path, bytes, hash).await,
        }
    }

    /// Computes the image ID and object key of the file.
    pub fn prepare(&self, path: &Path, bytes: Vec<u8>) -> PreparedUpload {
        let info = self.image_processor.inspect(&bytes);
        let taken = info.taken_at.as_ref().and_then(sparks_domain::TakenAt::unix_seconds);
        let image = self.image_id(taken, &Sha256::digest(&bytes).into());
        let upload = Upload {
            bucket: self.bucket.clone(),
            key: object_keys::original(&image, info.extension.unwrap_or("jpg")),
            image,
            uploader: self.uploader.clone(),
            version: FileObjects::version(&bytes),
            bytes: bytes.len() as u64,
            file_name: file_name(path),
            when: self.clock.now(),
        };
        PreparedUpload { upload, content: Content::image(info.mime_type.unwrap_or("application/octet-stream")), bytes }
    }

    /// Stores the original, then creates its row and its message.
    pub async fn submit(&self, prepared: PreparedUpload) -> anyhow::Result<UploadResult> {
        let result = prepared.result(UploadStatus::Duplicate);
        let PreparedUpload { upload, content, bytes } = prepared;
        let submission = match self.backend.submitter.find(&upload).await? {
            Some(known) => known,
            None => {
                self.backend.objects.put(&upload.key, bytes, content, PutMode::IfAbsent).await?;
                self.backend.submitter.submit(upload).await?
            }
        };
        Ok(match submission {
            Submission::Duplicate => result,
            Submission::Queued(message) => UploadResult { status: UploadStatus::Queued(message), ..result },
        })
    }

    /// Records the rejection of a file over the limit in the event log, without storing the file.
    pub async fn reject_too_large(&self, path: &Path, bytes: u64, hash: [u8; 32]) -> anyhow::Result<UploadResult> {
        let image = self.image_id(None, &hash);
        let version: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let deduplication_id = format!("{image}/{version}");
        let source = SourceObject {
            key: object_keys::original(&image, "jpg"),
            version,
            sequencer: None,
            bytes,
            mime_type: None,
            file_name: Some(file_name(path)),
        };
        let message = format!("{bytes} bytes are more than the limit of {} (limits.max_bytes)", self.max_bytes);
        let reason = Rejection { code: RejectCode::TooManyBytes, message: message.clone() };
        self.pipeline.reject(image.clone(), self.uploader.clone(), source, reason).await?;
        Ok(UploadResult { image, deduplication_id, status: UploadStatus::Rejected(message) })
    }

    /// Returns an ID that is a function of uploader and content, and sorts by the time the photo was taken.
    fn image_id(&self, taken: Option<i64>, content: &[u8; 32]) -> ImageId {
        let digest =
            Sha256::new().chain_update(self.uploader.as_str()).chain_update([0]).chain_update(content).finalize();
        let mut payload = [0; 16];
        payload.copy_from_slice(&digest[..16]);
        ImageId::of_content(taken, payload)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
