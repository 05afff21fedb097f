//! From a file to an upload: the platform's part.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use sparks_domain::{Email, ImageId, RejectCode, Rejection, Source};
use sparks_embedded::{Embedded, FileObjects, Submission, Upload};
use sparks_engine::{Clock, Content, Darkroom, Objects, Pipeline, PutMode};

use super::{Album, Photo};

/// Uploads files.
pub struct Submitter {
    /// Where to.
    pub backend: Arc<Embedded>,
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

/// What a file holds, as far as we care to read.
enum Contents {
    Bytes(Vec<u8>),
    TooMany { bytes: u64, hash: [u8; 32] },
}

impl Submitter {
    /// Uploads every file, one after the other, so that their order is the order of the messages.
    pub async fn submit_all(&self, files: Vec<PathBuf>, album: &Album) {
        for path in files {
            if let Err(error) = self.submit(&path, album).await {
                album.failed(path, format!("{error:#}"));
            }
        }
        album.complete();
    }

    async fn submit(&self, path: &Path, album: &Album) -> anyhow::Result<()> {
        let max_bytes = self.max_bytes;
        let file = path.to_owned();
        match tokio::task::spawn_blocking(move || read(&file, max_bytes)).await?? {
            Contents::Bytes(bytes) => self.upload(path, bytes, album).await,
            Contents::TooMany { bytes, hash } => self.refuse(path, bytes, hash, album).await,
        }
    }

    async fn upload(&self, path: &Path, bytes: Vec<u8>, album: &Album) -> anyhow::Result<()> {
        let about = self.darkroom.describe(&bytes);
        let taken = about.taken_at.as_ref().and_then(sparks_domain::TakenAt::unix_seconds);
        let image = self.image_id(taken, &Sha256::digest(&bytes).into());
        let upload = Upload {
            key: format!("originals/{image}.{}", about.extension.unwrap_or("jpg")),
            image: image.clone(),
            uploader: self.uploader.clone(),
            version: FileObjects::version(&bytes),
            bytes: bytes.len() as u64,
            file_name: file_name(path),
            when: self.clock.now(),
        };
        let deduplication = upload.deduplication();
        let photo = |duplicate| Photo { path: path.to_owned(), image, deduplication, duplicate };
        if !album.is_first(&upload.image) {
            album.settled(photo(true));
            return Ok(());
        }
        let known = self.backend.intake.known(&upload).await?;
        let submission = match known {
            Some(known) => known,
            None => {
                let content = Content::picture(about.mime_type.unwrap_or("application/octet-stream"));
                self.backend.objects.put(&upload.key, bytes, content, PutMode::IfAbsent).await?;
                self.backend.intake.submit(upload).await?
            }
        };
        match submission {
            Submission::Duplicate => album.settled(photo(true)),
            Submission::Queued(message) => album.waits_for(photo(false), message),
        }
        Ok(())
    }

    /// A file over the limit is not copied anywhere; the log says why.
    async fn refuse(&self, path: &Path, bytes: u64, hash: [u8; 32], album: &Album) -> anyhow::Result<()> {
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
        let reason = Rejection { code: RejectCode::TooManyBytes, message };
        self.pipeline.refuse(image.clone(), self.uploader.clone(), source, reason).await?;
        album.settled(Photo { path: path.to_owned(), image, deduplication, duplicate: false });
        Ok(())
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

/// Reads a file of at most so many bytes; of a larger one only the hash.
fn read(path: &Path, max_bytes: u64) -> io::Result<Contents> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    if size > max_bytes {
        let mut digest = Sha256::new();
        let mut chunk = vec![0; 1 << 20];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(Contents::TooMany { bytes: size, hash: digest.finalize().into() }),
                n => digest.update(&chunk[..n]),
            }
        }
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(Contents::Bytes(bytes))
}
