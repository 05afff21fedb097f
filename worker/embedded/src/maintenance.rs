//! Whole-table operations in SQLite.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Transaction, params};
use sha2::{Digest, Sha256};
use sparks_domain::{
    Attributes, Difference, FaceId, ImageId, Item, Key, Lane, PersonId, PhotoState, Position, Seq, drift,
};
use sparks_engine::{
    Checkpoint, DecidedFace, Fingerprint, Maintenance, RepairGroup, RepairGuard, RepairReport, StoreError,
};

use crate::{
    SqliteStore,
    database::{DatabaseError, Durability},
    event_log, face_rows, item_rows,
    sqlite_store::{is_identity_unchanged, is_photo_unchanged},
};

#[async_trait]
impl Maintenance for SqliteStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.database.read(|tx| Ok(position(event_log::head(tx, "EVENTS")?))).await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        let after = after.cloned();
        self.database.read_long(move |tx| Ok(scan(tx, after.as_ref(), most)?)).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        let images = images.to_vec();
        self.log_reader
            .read_long(move |tx| {
                Ok(images.iter().map(|image| event_log::state(tx, image)).collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        let work = move |tx: &Transaction<'_>| {
            let mut report = RepairReport::default();
            for (position, group) in groups.iter().enumerate() {
                if !repair(tx, group, write, &mut report)? {
                    report.outdated.push(position);
                }
            }
            Ok(report)
        };
        if write { self.database.write_long(work).await } else { self.database.read_long(work).await }
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let after = after.cloned();
        self.database.read_long(move |tx| Ok(face_rows::unidentified(tx, after.as_ref(), most)?)).await
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let of = of.cloned();
        self.database.read_long(move |tx| Ok(face_rows::co_occurrences(tx, of.as_ref())?)).await
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        self.database.read(move |tx| Ok(position(event_log::head(tx, lane(checkpoint))?))).await
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        let seq = position.in_lane(Lane::IDENTITY);
        self.database.write(Durability::Crash, move |tx| Ok(event_log::set_head(tx, lane(checkpoint), seq)?)).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.database.read_long(|tx| Ok(fingerprint(tx)?)).await
    }
}

fn position(seq: Seq) -> Position {
    Position::at(Lane::IDENTITY, seq)
}

/// Returns the row of `heads` that stores a checkpoint.
fn lane(checkpoint: Checkpoint) -> &'static str {
    match checkpoint {
        Checkpoint::Followed => "FOLLOWED",
        Checkpoint::Considered => "CONSIDERED",
    }
}

fn scan(tx: &Transaction<'_>, after: Option<&Key>, most: usize) -> Result<Vec<Item>, DatabaseError> {
    // Keys are not empty, so all of them follow the empty one.
    let (pk, sk) = after.map_or(("", ""), |key| (&key.pk, &key.sk));
    let sql = "SELECT PK, SK, item FROM items WHERE (PK, SK) > (?1, ?2) ORDER BY PK, SK LIMIT ?3";
    let mut statement = tx.prepare_cached(sql)?;
    let mut found = statement.query(params![pk, sk, i64::try_from(most).unwrap_or(i64::MAX)])?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(item_rows::item(row)?);
    }
    Ok(items)
}

/// Compares and repairs one group. Returns `false` if it differs and its guard does not hold any more.
fn repair(
    tx: &Transaction<'_>,
    group: &RepairGroup,
    write: bool,
    report: &mut RepairReport,
) -> Result<bool, DatabaseError> {
    let found: Vec<Option<Attributes>> =
        group.mutations.iter().map(|mutation| item_rows::get(tx, mutation.key())).collect::<Result<_, _>>()?;
    let rows = || group.mutations.iter().zip(&found);
    let missing = rows().find(|(mutation, row)| row.is_none() && mutation.requires_row());
    let differences: Vec<Vec<Difference>> = rows().map(|(mutation, row)| drift(mutation, row.as_ref())).collect();
    let is_equal = missing.is_none() && differences.iter().all(Vec::is_empty);
    if is_equal || !holds(tx, &group.guard)? {
        return Ok(is_equal);
    }
    if let Some((mutation, _)) = missing {
        report.gone.push(mutation.key().clone());
        return Ok(true);
    }
    for ((mutation, row), differences) in group.mutations.iter().zip(found).zip(differences) {
        if write && !differences.is_empty() {
            item_rows::apply(tx, mutation, row)?;
        }
        report.differences.extend(differences);
    }
    Ok(true)
}

fn holds(tx: &Transaction<'_>, guard: &RepairGuard) -> Result<bool, DatabaseError> {
    match guard {
        RepairGuard::Photo(photo) => is_photo_unchanged(tx, photo),
        RepairGuard::Identity(identity) => is_identity_unchanged(tx, identity),
    }
}

/// Hashes the rows as stored: JSON written here is canonical, and rows of other writers are never rewritten.
fn fingerprint(tx: &Transaction<'_>) -> Result<Fingerprint, DatabaseError> {
    let mut statement = tx.prepare_cached("SELECT PK, SK, item FROM items ORDER BY PK, SK")?;
    let mut found = statement.query([])?;
    let mut digest = Sha256::new();
    let mut count = 0;
    while let Some(row) = found.next()? {
        for column in 0..3 {
            digest.update(row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?);
            digest.update([0]);
        }
        count += 1;
    }
    let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Fingerprint { sha256, rows: count })
}
