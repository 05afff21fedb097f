//! The files of one `sparks ingest` call and their status.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use indicatif::ProgressBar;
use sparks_domain::ImageId;
use sparks_embedded::SqliteQueue;
use sparks_engine::{MessageId, QueueError};

/// An uploaded file.
#[derive(Debug, Clone)]
pub struct IngestedPhoto {
    /// The file.
    pub path: PathBuf,
    /// The image ID.
    pub image: ImageId,
    /// The deduplication ID of its message, by which a dead letter is found.
    pub deduplication_id: String,
    /// Whether it was uploaded before this call.
    pub is_duplicate: bool,
}

/// The files of one call.
pub struct IngestBatch {
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    photos: Vec<IngestedPhoto>,
    images: HashSet<ImageId>,
    unsettled: BTreeSet<MessageId>,
    failed: Vec<(PathBuf, String)>,
    is_submitted: bool,
}

impl IngestBatch {
    /// Creates an empty batch that shows its progress on the bar.
    pub fn new(bar: ProgressBar) -> Self {
        Self { bar, state: Mutex::default() }
    }

    /// Returns whether this is the first file of this call with this content, and remembers it.
    pub fn is_first(&self, image: &ImageId) -> bool {
        self.lock().images.insert(image.clone())
    }

    /// Adds a photo that needs no processing.
    pub fn add_settled(&self, photo: IngestedPhoto) {
        self.lock().photos.push(photo);
        self.bar.inc(1);
    }

    /// Adds a photo that is processed once this message is settled.
    pub fn add_queued(&self, photo: IngestedPhoto, message: MessageId) {
        let mut state = self.lock();
        state.photos.push(photo);
        state.unsettled.insert(message);
    }

    /// Adds a file that could not be read or uploaded.
    pub fn add_failed(&self, path: PathBuf, reason: String) {
        self.lock().failed.push((path, reason));
        self.bar.inc(1);
    }

    /// Records that all files are uploaded.
    pub fn finish_submission(&self) {
        self.lock().is_submitted = true;
    }

    /// Records that this process has settled a message, of this batch or not.
    pub fn message_settled(&self, message: &MessageId) {
        if self.lock().unsettled.remove(message) {
            self.bar.inc(1);
        }
    }

    /// Reads from the queue which messages of the batch other processes have settled.
    pub async fn refresh(&self, queue: &SqliteQueue) -> Result<(), QueueError> {
        let ends = {
            let state = self.lock();
            state.unsettled.first().cloned().zip(state.unsettled.last().cloned())
        };
        let Some((first, last)) = ends else { return Ok(()) };
        let unsettled: HashSet<MessageId> = queue.unsettled(&first, &last).await?.into_iter().collect();
        let mut state = self.lock();
        let before = state.unsettled.len();
        // Messages sent during the query are after `last`.
        state.unsettled.retain(|id| *id > last || unsettled.contains(id));
        self.bar.inc((before - state.unsettled.len()) as u64);
        Ok(())
    }

    /// Returns whether all files are uploaded and their messages settled.
    pub fn is_settled(&self) -> bool {
        let state = self.lock();
        state.is_submitted && state.unsettled.is_empty()
    }

    /// Returns the photos, and the files that failed with the reason.
    pub fn into_parts(self) -> (Vec<IngestedPhoto>, Vec<(PathBuf, String)>) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.bar.finish_and_clear();
        (state.photos, state.failed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
