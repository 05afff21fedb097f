//! From a file to an upload: the platform's part.

use std::{path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use sparks_domain::{Email, ImageId, RejectCode, Rejection, Source};
use sparks_embedded::{Embedded, FileObjects, Submission};
use sparks_engine::{Clock, Content, Darkroom, MessageId, Objects, Pipeline, PutMode, Upload};

use super::Contents;

/// Uploads files.
pub struct Uploader {
    /// Where to.
    pub backend: Arc<Embedded>,
    /// The bucket's name.
    pub bucket: String,
    /// Who tells what a file is.
    pub darkroom: Arc<dyn Darkroom>,
    /// Who records what is too large to upload.
    pub pipeline: Arc<Pipeline>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Whose files.
    pub uploader: Email,
    /// The largest file.
    pub max_bytes: u64,
}

/// A file that is uploaded, or needs not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Its photo.
    pub image: ImageId,
    /// The name of its message, under which a dead letter is found.
    pub deduplication: String,
    /// What came of it so far.
    pub receipt: Receipt,
}

/// What came of an upload so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// The photo was there before, and nothing is left to do.
    Duplicate,
    /// It is done with when this message is.
    Queued(MessageId),
    /// It cannot be taken, and the log says why.
    Rejected(String),
}

/// A file whose photo has a name, and that nobody knows of yet.
pub struct Draft {
    upload: Upload,
    content: Content,
    bytes: Vec<u8>,
}

impl Draft {
    /// Its photo.
    pub fn image(&self) -> &ImageId {
        &self.upload.image
    }

    /// What there is to say of it without asking anybody.
    pub fn submitted(&self, receipt: Receipt) -> Submitted {
        Submitted { image: self.upload.image.clone(), deduplication: self.upload.deduplication(), receipt }
    }
}

impl Uploader {
    /// Uploads what was read from this file, unless it is there already or larger than we take.
    pub async fn upload(&self, path: &Path, contents: Contents) -> anyhow::Result<Submitted> {
        match contents {
            Contents::Bytes(bytes) => self.submit(self.draft(path, bytes)).await,
            Contents::TooMany { bytes, hash } => self.refuse(path, bytes, hash).await,
        }
    }

    /// Names the photo in these bytes of this file.
    pub fn draft(&self, path: &Path, bytes: Vec<u8>) -> Draft {
        let about = self.darkroom.describe(&bytes);
        let taken = about.taken_at.as_ref().and_then(sparks_domain::TakenAt::unix_seconds);
        let image = self.image_id(taken, &Sha256::digest(&bytes).into());
        let upload = Upload {
            bucket: self.bucket.clone(),
            key: format!("originals/{image}.{}", about.extension.unwrap_or("jpg")),
            image,
            uploader: self.uploader.clone(),
            version: FileObjects::version(&bytes),
            bytes: bytes.len() as u64,
            file_name: file_name(path),
            when: self.clock.now(),
        };
        Draft { upload, content: Content::picture(about.mime_type.unwrap_or("application/octet-stream")), bytes }
    }

    /// Stores the original, then makes its row and its message.
    pub async fn submit(&self, draft: Draft) -> anyhow::Result<Submitted> {
        let submitted = draft.submitted(Receipt::Duplicate);
        let Draft { upload, content, bytes } = draft;
        let submission = match self.backend.intake.known(&upload).await? {
            Some(known) => known,
            None => {
                self.backend.objects.put(&upload.key, bytes, content, PutMode::IfAbsent).await?;
                self.backend.intake.submit(upload).await?
            }
        };
        Ok(match submission {
            Submission::Duplicate => submitted,
            Submission::Queued(message) => Submitted { receipt: Receipt::Queued(message), ..submitted },
        })
    }

    /// A file over the limit is not copied anywhere; the log says why.
    pub async fn refuse(&self, path: &Path, bytes: u64, hash: [u8; 32]) -> anyhow::Result<Submitted> {
        let image = self.image_id(None, &hash);
        let version: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let deduplication = format!("{image}/{version}");
        let source = Source {
            key: format!("originals/{image}.jpg"),
            version,
            sequencer: None,
            bytes,
            mime_type: None,
            file_name: Some(file_name(path)),
        };
        let message = format!("{bytes} bytes are more than the limit of {} (limits.max_bytes)", self.max_bytes);
        let reason = Rejection { code: RejectCode::TooManyBytes, message: message.clone() };
        self.pipeline.refuse(image.clone(), self.uploader.clone(), source, reason).await?;
        Ok(Submitted { image, deduplication, receipt: Receipt::Rejected(message) })
    }

    /// The same file of the same uploader is the same photo, and photos sort by the time they were taken.
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
