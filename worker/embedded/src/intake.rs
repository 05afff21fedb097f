//! The platform's part on one machine: an upload becomes a row and a message.

use rusqlite::{Transaction, params};
use serde_json::json;
use sparks_domain::{Email, ImageId, Key, Outcome, Timestamp};
use sparks_engine::{MessageId, StoreError, upload_event};

use crate::{
    database::{Database, DatabaseError, Durability},
    log, queue, rows,
};

/// Takes uploads in.
pub struct Intake {
    database: Database,
}

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

/// What came of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// The photo is in the table already, and nothing is left to do.
    Duplicate,
    /// There is a message about it to be settled.
    Queued(MessageId),
}

impl Upload {
    /// What keeps two messages about the same thing from standing in the queue.
    pub fn deduplication(&self) -> String {
        format!("{}/{}", self.image, self.version)
    }
}

impl Intake {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// What is known of the upload before its bytes are stored. `None` if it is new.
    pub async fn known(&self, upload: &Upload) -> Result<Option<Submission>, StoreError> {
        let upload = upload.clone();
        self.database.read(move |tx| Ok(known(tx, &upload)?)).await
    }

    /// Makes the photo's row, unless there is one, and a message about it. The original must be stored by now.
    pub async fn submit(&self, upload: Upload) -> Result<Submission, StoreError> {
        self.database.write(Durability::Crash, move |tx| Ok(submit(tx, &upload)?)).await
    }
}

fn known(tx: &Transaction<'_>, upload: &Upload) -> Result<Option<Submission>, DatabaseError> {
    if let Some(id) = queue::find(tx, &upload.deduplication())? {
        return Ok(Some(Submission::Queued(id)));
    }
    let state = log::state(tx, &upload.image)?;
    let processed = state.is_some_and(|s| s.outcome == Outcome::Processed && s.version == upload.version);
    Ok(processed.then_some(Submission::Duplicate))
}

fn submit(tx: &Transaction<'_>, upload: &Upload) -> Result<Submission, DatabaseError> {
    if let Some(known) = known(tx, upload)? {
        return Ok(known);
    }
    let key = Key::image(&upload.image, &upload.uploader);
    if rows::get(tx, &key)?.is_none() {
        let row = json!({
            "entityType": "IMAGE",
            "assetType": "IMAGE",
            "imageId": upload.image,
            "uploadedBy": upload.uploader,
            "uploaded_datetime": upload.when,
            "lastModified": upload.when,
            "s3Key": upload.key,
            "persons": [],
            "tags": [],
        });
        rows::put(tx, &key, row.as_object().unwrap_or(&serde_json::Map::new()))?;
    }
    // Whoever uploads a photo again wants it tried again.
    let deduplication = upload.deduplication();
    tx.prepare_cached("DELETE FROM dead_letters WHERE deduplication = ?")?.execute(params![deduplication])?;
    // A later upload of the same photo is a later version of it, even with the same content.
    let sequencer = format!("{:016X}", upload.when.as_millis());
    let body = upload_event(&upload.bucket, &upload.key, upload.bytes, &upload.version, &sequencer, &upload.file_name);
    Ok(Submission::Queued(queue::send(tx, &body, &deduplication)?))
}
