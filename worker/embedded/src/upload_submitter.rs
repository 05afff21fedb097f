//! Uploads to the embedded backend: the IMAGE row and the message of a photo in one transaction.

use rusqlite::{Transaction, params};
use sparks_domain::PhotoStatus;
use sparks_engine::{MessageId, StoreError, Upload};

use crate::{
    database::{Database, DatabaseError, Durability},
    event_log, item_rows, sqlite_queue,
};

/// Submits uploads to the worker.
pub struct UploadSubmitter {
    database: Database,
}

/// The result of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// The photo has been processed already.
    Duplicate,
    /// The message of the photo is in the queue.
    Queued(MessageId),
}

impl UploadSubmitter {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Returns the result of an earlier submission of the same upload, or `None` if it is new. Avoids storing the original again.
    pub async fn find(&self, upload: &Upload) -> Result<Option<Submission>, StoreError> {
        let upload = upload.clone();
        self.database.read(move |tx| Ok(find(tx, &upload)?)).await
    }

    /// Creates the row of the photo, unless it exists, and sends its message. The original must be stored before.
    pub async fn submit(&self, upload: Upload) -> Result<Submission, StoreError> {
        self.database.write(Durability::Crash, move |tx| Ok(submit(tx, &upload)?)).await
    }
}

fn find(tx: &Transaction<'_>, upload: &Upload) -> Result<Option<Submission>, DatabaseError> {
    if let Some(id) = sqlite_queue::find(tx, &upload.deduplication_id())? {
        return Ok(Some(Submission::Queued(id)));
    }
    let state = event_log::state(tx, &upload.image)?;
    let is_processed = state.is_some_and(|s| s.status == PhotoStatus::Processed && s.version == upload.version);
    Ok(is_processed.then_some(Submission::Duplicate))
}

fn submit(tx: &Transaction<'_>, upload: &Upload) -> Result<Submission, DatabaseError> {
    if let Some(submission) = find(tx, upload)? {
        return Ok(submission);
    }
    let (key, row) = upload.row();
    if item_rows::get(tx, &key)?.is_none() {
        item_rows::put(tx, &key, &row)?;
    }
    // Uploading a dead-lettered photo again retries it.
    let deduplication = upload.deduplication_id();
    tx.prepare_cached("DELETE FROM dead_letters WHERE deduplication = ?")?.execute(params![deduplication])?;
    Ok(Submission::Queued(sqlite_queue::send(tx, &upload.message(), &deduplication)?))
}
