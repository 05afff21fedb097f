//! Files that are uploaded and still in the inbox.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use sparks_domain::{Event, ImageId, PhotoStatus};
use sparks_embedded::{Embedded, SqliteQueue};
use sparks_engine::{MessageId, QueueError, Store};

use super::{file_fingerprint::FileFingerprint, output_folders::FileResult};

/// Maximum number of files in flight; others wait in the inbox.
const MAX_IN_FLIGHT: usize = 64;

/// A file that stays in the inbox until its message is settled.
#[derive(Debug)]
pub(super) struct UploadedFile {
    /// The path.
    pub path: PathBuf,
    /// The fingerprint at the upload.
    pub fingerprint: FileFingerprint,
    /// The image ID.
    pub image: ImageId,
    /// The deduplication ID of its message, by which a dead letter is found.
    pub deduplication_id: String,
    /// The message. Two copies of a file share one.
    pub message: MessageId,
}

/// Files between upload and result.
#[derive(Debug, Default)]
pub(super) struct InFlightFiles(Vec<UploadedFile>);

impl InFlightFiles {
    /// Adds a file.
    pub fn add(&mut self, file: UploadedFile) {
        self.0.push(file);
    }

    /// Returns whether at least half of the capacity is free.
    pub fn has_room(&self) -> bool {
        self.0.len() <= MAX_IN_FLIGHT / 2
    }

    /// Returns whether no more files can be added.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_IN_FLIGHT
    }

    /// Returns whether the file is in flight.
    pub fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|file| file.path == path)
    }

    /// Removes and returns the files whose messages are settled, by this or another process.
    pub async fn remove_settled(&mut self, queue: &SqliteQueue) -> Result<Vec<UploadedFile>, QueueError> {
        let messages = || self.0.iter().map(|file| &file.message);
        let Some((first, last)) = messages().min().zip(messages().max()) else { return Ok(Vec::new()) };
        let unsettled: HashSet<MessageId> = queue.unsettled(first, last).await?.into_iter().collect();
        Ok(self.0.extract_if(.., |file| !unsettled.contains(&file.message)).collect())
    }
}

impl UploadedFile {
    /// Returns the result from the event log or the dead letters. `None` if neither has one: then the message was lost,
    /// and the file must be uploaded again.
    pub async fn result(&self, backend: &Embedded) -> anyhow::Result<Option<FileResult>> {
        if let Some(letter) = backend.queue.dead_letter(&self.deduplication_id).await? {
            return Ok(Some(FileResult::Rejected(letter.reason)));
        }
        let Some(state) = backend.store.photo(&self.image).await? else { return Ok(None) };
        if state.status == PhotoStatus::Processed {
            return Ok(Some(FileResult::Done));
        }
        let event = backend.store.event(&self.image, state.seq).await?;
        Ok(event.and_then(|recorded| match recorded.event {
            Event::PhotoRejected(event) => Some(FileResult::Rejected(event.reason.message)),
            _ => None,
        }))
    }
}
