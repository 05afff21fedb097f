//! The platform's part on one machine: an upload becomes a row and a message.

use rusqlite::{Transaction, params};
use sparks_domain::Outcome;
use sparks_engine::{MessageId, StoreError, Upload};

use crate::{
    database::{Database, DatabaseError, Durability},
    log, queue, rows,
};

/// Takes uploads in.
pub struct Intake {
    database: Database,
}

/// What came of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// The photo is in the table already, and nothing is left to do.
    Duplicate,
    /// There is a message about it to be settled.
    Queued(MessageId),
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
    let (key, row) = upload.row();
    if rows::get(tx, &key)?.is_none() {
        rows::put(tx, &key, &row)?;
    }
    // Whoever uploads a photo again wants it tried again.
    let deduplication = upload.deduplication();
    tx.prepare_cached("DELETE FROM dead_letters WHERE deduplication = ?")?.execute(params![deduplication])?;
    Ok(Submission::Queued(queue::send(tx, &upload.message(), &deduplication)?))
}
