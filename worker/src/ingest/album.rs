//! The files of one call, and what has become of each so far.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use indicatif::ProgressBar;
use sparks_domain::ImageId;
use sparks_embedded::SqliteQueue;
use sparks_engine::{MessageId, QueueError};

/// A file that became a photo.
#[derive(Debug, Clone)]
pub struct Photo {
    /// The file.
    pub path: PathBuf,
    /// The photo.
    pub image: ImageId,
    /// The name of its message, under which a dead letter is found.
    pub deduplication: String,
    /// Whether it was there before this call.
    pub duplicate: bool,
}

/// Everything this call takes in.
pub struct Album {
    bar: ProgressBar,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    photos: Vec<Photo>,
    seen: HashSet<ImageId>,
    unsettled: BTreeSet<MessageId>,
    failed: Vec<(PathBuf, String)>,
    complete: bool,
}

impl Album {
    /// An album that shows its progress on this bar.
    pub fn new(bar: ProgressBar) -> Self {
        Self { bar, inner: Mutex::default() }
    }

    /// Whether this is the first file of this call with this content.
    pub fn is_first(&self, image: &ImageId) -> bool {
        self.lock().seen.insert(image.clone())
    }

    /// A file whose photo needs nothing more.
    pub fn settled(&self, photo: Photo) {
        self.lock().photos.push(photo);
        self.bar.inc(1);
    }

    /// A file whose photo is done with when this message is.
    pub fn waits_for(&self, photo: Photo, message: MessageId) {
        let mut inner = self.lock();
        inner.photos.push(photo);
        inner.unsettled.insert(message);
    }

    /// A file that could not be read or submitted.
    pub fn failed(&self, path: PathBuf, reason: String) {
        self.lock().failed.push((path, reason));
        self.bar.inc(1);
    }

    /// All files have been submitted.
    pub fn complete(&self) {
        self.lock().complete = true;
    }

    /// A message of this process was settled; it may be one of ours.
    pub fn message_settled(&self, message: &MessageId) {
        if self.lock().unsettled.remove(message) {
            self.bar.inc(1);
        }
    }

    /// Asks the queue which of our messages somebody else has settled.
    pub async fn look_again(&self, queue: &SqliteQueue) -> Result<(), QueueError> {
        let ends = {
            let inner = self.lock();
            inner.unsettled.first().cloned().zip(inner.unsettled.last().cloned())
        };
        let Some((first, last)) = ends else { return Ok(()) };
        let unsettled: HashSet<MessageId> = queue.unsettled(&first, &last).await?.into_iter().collect();
        let mut inner = self.lock();
        let before = inner.unsettled.len();
        // What was submitted while we asked is beyond `last`, and stays.
        inner.unsettled.retain(|id| *id > last || unsettled.contains(id));
        self.bar.inc((before - inner.unsettled.len()) as u64);
        Ok(())
    }

    /// Whether nothing is left to wait for.
    pub fn is_settled(&self) -> bool {
        let inner = self.lock();
        inner.complete && inner.unsettled.is_empty()
    }

    /// What the album holds: photos, and files that failed.
    pub fn into_parts(self) -> (Vec<Photo>, Vec<(PathBuf, String)>) {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.bar.finish_and_clear();
        (inner.photos, inner.failed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
