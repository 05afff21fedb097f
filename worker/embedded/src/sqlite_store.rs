//! The store in SQLite. A commit is one transaction.

use async_trait::async_trait;
use rusqlite::Transaction;
use sparks_domain::{
    Attributes, FaceId, IdentityHead, ImageId, Item, Key, Lane, Mutation, PersonId, PhotoState, Position, Presence,
    RecordedEvent, Seq,
};
use sparks_engine::{
    Commit, CommitError, DecidedFace, IdentityTail, Page, PhotoGuard, Query, Store, StoreError, StoredFace,
    TemplateScope, Templates, readable_level,
};

use crate::{
    database::{Database, DatabaseError, Durability},
    event_log, face_rows,
    folder_level::FolderLevel,
    item_rows,
};

/// Table, event log and signatures in one SQLite file.
pub struct SqliteStore {
    pub(crate) database: Database,
    /// A second connection, to read the event log while the first writes.
    pub(crate) log_reader: Database,
    level: FolderLevel,
}

impl SqliteStore {
    pub(crate) fn new(database: Database, log_reader: Database, level: FolderLevel) -> Self {
        Self { database, log_reader, level }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let (commit, level) = (commit.clone(), self.level.clone());
        self.database.write(Durability::PowerLoss, move |tx| write_commit(tx, &commit, &level)).await
    }

    fn has_serial_commits(&self) -> bool {
        true
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        let image = image.clone();
        self.database.read(move |tx| Ok(event_log::state(tx, &image)?)).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let read = move |tx: &Transaction<'_>| {
            let (events, seq) = (event_log::read_identity(tx, after)?, event_log::head(tx, "IDENTITY")?);
            Ok((events, seq, counter(tx)?, event_log::level(tx)?))
        };
        let then =
            |(rows, seq, counter, level)| Ok(IdentityTail { events: event_log::parse(rows)?, seq, counter, level });
        let tail: Result<IdentityTail, StoreError> = self.database.read_then(read, then).await;
        let tail = tail?;
        readable_level(tail.level)?;
        Ok(tail)
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let after = after.in_lane(Lane::IDENTITY);
        self.log_reader.read_then(move |tx| event_log::read(tx, after, most), event_log::parse).await
    }

    async fn event(&self, _: &ImageId, Seq(seq): Seq) -> Result<Option<RecordedEvent>, StoreError> {
        let before = Seq(seq.saturating_sub(1));
        let then = |rows| Ok(event_log::parse(rows)?.pop());
        self.log_reader.read_then(move |tx| event_log::read(tx, before, 1), then).await
    }

    /// The embedded log has a single lane, so the scope makes no difference.
    async fn templates(&self, after: &Position, _: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        let seq = after.in_lane(Lane::IDENTITY);
        let found =
            self.log_reader.read_long(move |tx| Ok::<_, StoreError>(face_rows::templates(tx, seq, most)?)).await?;
        let read = found.last().map_or(seq, |decided| decided.seq);
        let faces = found.into_iter().map(|decided| decided.kept).collect();
        Ok(Templates { faces, read: Position::at(Lane::IDENTITY, read) })
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        let faces = faces.to_vec();
        self.database.read_long(move |tx| Ok(face_rows::get(tx, faces)?)).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        let persons = persons.to_vec();
        self.database.read(move |tx| Ok(face_rows::of_persons(tx, &persons)?)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.database.write_long(|tx| Ok(event_log::touch(tx)?)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let key = key.clone();
        self.database.read(move |tx| Ok(item_rows::get(tx, &key)?.map(|attributes| Item { key, attributes }))).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let keys = keys.to_vec();
        self.database
            .read(move |tx| {
                let mut items = Vec::with_capacity(keys.len());
                for key in keys {
                    items.extend(item_rows::get(tx, &key)?.map(|attributes| Item { key, attributes }));
                }
                Ok(items)
            })
            .await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        let query = query.clone();
        self.database.read(move |tx| Ok(item_rows::query(tx, &query)?)).await
    }
}

/// Checks the conditions, then writes events, signatures and rows.
fn write_commit(tx: &Transaction<'_>, commit: &Commit, level: &FolderLevel) -> Result<Vec<RecordedEvent>, CommitError> {
    if let Some(photo) = &commit.photo
        && !is_photo_unchanged(tx, photo)?
    {
        return Err(CommitError::PhotoMoved);
    }
    if let Some(identity) = &commit.identity
        && !is_identity_unchanged(tx, identity)?
    {
        return Err(CommitError::IdentityMoved);
    }
    level.raise_for(tx, commit)?;
    let recorded = event_log::append(tx, commit)?;
    if let Some(photo) = &commit.photo {
        event_log::update_state(tx, &photo.image, photo.before.clone(), &recorded)?;
    }
    let seq = recorded.last().map_or(Seq(0), |recorded| recorded.seq);
    face_rows::insert(tx, &commit.signatures, seq)?;
    face_rows::identify(tx, &commit.identified)?;
    face_rows::promote(tx, &commit.promoted, seq)?;
    face_rows::delete(tx, &commit.erased)?;
    for mutation in &commit.mutations {
        let row = item_rows::get(tx, mutation.key())?;
        check_presence(mutation, row.as_ref())?;
        item_rows::apply(tx, mutation, row)?;
    }
    Ok(recorded)
}

/// Whether the photo still has the state that was decided on.
pub(crate) fn is_photo_unchanged(tx: &Transaction<'_>, photo: &PhotoGuard) -> Result<bool, DatabaseError> {
    Ok(event_log::state(tx, &photo.image)? == photo.before)
}

/// Whether no identity event was recorded since, and the counter is the one that was decided on.
pub(crate) fn is_identity_unchanged(tx: &Transaction<'_>, identity: &IdentityHead) -> Result<bool, DatabaseError> {
    Ok(event_log::head(tx, "IDENTITY")? == identity.seq && counter(tx)? == identity.counter)
}

fn check_presence(mutation: &Mutation, row: Option<&Attributes>) -> Result<(), CommitError> {
    match (mutation, row) {
        (mutation, None) if mutation.requires_row() => Err(CommitError::RowMissing(mutation.key().clone())),
        (Mutation::Set { key, presence: Presence::Absent, .. }, Some(_)) => match key.sk.parse::<PersonId>() {
            Ok(person) => Err(CommitError::NumberTaken(person)),
            Err(_) => Err(StoreError::Unreadable(format!("the row {key} exists already")).into()),
        },
        _ => Ok(()),
    }
}

/// Returns the last allocated person number; 0 if the row does not exist.
fn counter(tx: &Transaction<'_>) -> Result<u32, DatabaseError> {
    let row = item_rows::get(tx, &Key::counter())?;
    let Some(limit) = row.as_ref().and_then(|row| row.get("limit")) else { return Ok(0) };
    let number = limit.as_f64().filter(|n| *n >= 0.0 && *n <= f64::from(u32::MAX) && n.fract() == 0.0);
    number.map(|n| n as u32).ok_or_else(|| {
        DatabaseError::Unreadable(format!("UNKNOWN_PERSONS.limit is {limit}, which is not a valid count"))
    })
}

impl From<DatabaseError> for CommitError {
    fn from(error: DatabaseError) -> Self {
        Self::Store(error.into())
    }
}
