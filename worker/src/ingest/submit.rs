//! From the files of one call to its album.

use std::path::{Path, PathBuf};

use super::{Album, Photo};
use crate::upload::{Contents, Receipt, Submitted, Uploader};

/// Uploads the files of one call.
pub struct Submitter {
    /// Who uploads each.
    pub uploader: Uploader,
}

impl Submitter {
    /// Uploads every file, one after the other, so that their order is the order of the messages.
    pub async fn submit_all(&self, files: Vec<PathBuf>, album: &Album) {
        for path in files {
            match self.submit(&path, album).await {
                Ok(submitted) => tell(album, path, submitted),
                Err(error) => album.failed(path, format!("{error:#}")),
            }
        }
        album.complete();
    }

    async fn submit(&self, path: &Path, album: &Album) -> anyhow::Result<Submitted> {
        let max_bytes = self.uploader.max_bytes;
        let file = path.to_owned();
        match tokio::task::spawn_blocking(move || Contents::read(&file, max_bytes)).await?? {
            Contents::Bytes(bytes) => {
                let draft = self.uploader.draft(path, bytes);
                match album.is_first(draft.image()) {
                    true => self.uploader.submit(draft).await,
                    false => Ok(draft.submitted(Receipt::Duplicate)),
                }
            }
            Contents::TooMany { bytes, hash } => self.uploader.refuse(path, bytes, hash).await,
        }
    }
}

fn tell(album: &Album, path: PathBuf, submitted: Submitted) {
    let Submitted { image, deduplication, receipt } = submitted;
    let photo = |duplicate| Photo { path, image, deduplication, duplicate };
    match receipt {
        Receipt::Duplicate => album.settled(photo(true)),
        Receipt::Queued(message) => album.waits_for(photo(false), message),
        // The summary reads the reason in the log.
        Receipt::Rejected(_) => album.settled(photo(false)),
    }
}
