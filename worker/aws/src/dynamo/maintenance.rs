//! Maintenance of the whole store: repair, fingerprint, unidentified faces, checkpoints.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Seq, Timestamp, drift};
use sparks_engine::{
    Checkpoint, Commit, CommitError, DecidedFace, DependencyError, Fingerprint, Maintenance, RepairGroup, RepairGuard,
    RepairReport, Store, StoreError,
};

use super::{
    DynamoStore,
    attribute_value::{self, key_fields},
    log_items,
};
use crate::retry::with_retry;

/// Photos whose faces are read together.
const PAGE: usize = 100;

#[async_trait]
impl Maintenance for DynamoStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.read_heads().await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        let mut start = after.map(|key| key_fields(&key.pk, &key.sk));
        let mut items = Vec::new();
        while items.len() < most {
            let room = i32::try_from(most - items.len()).unwrap_or(i32::MAX);
            let (rows, next) = self.scan_page(&self.tables.platform, start, Some(room)).await?;
            items.extend(rows.iter().map(attribute_value::item).collect::<Result<Vec<_>, _>>()?);
            start = next;
            if start.is_none() {
                break;
            }
        }
        Ok(items)
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        let keys = images.iter().map(log_items::state_key).collect();
        let mut states = HashMap::new();
        for row in self.get_rows(&self.tables.log, keys).await? {
            states.insert(attribute_value::text(&row, "PK")?.to_owned(), log_items::parse_state(&row)?.0);
        }
        Ok(images.iter().map(|image| states.get(&format!("IMG#{image}")).cloned()).collect())
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        let rows = groups.iter().flat_map(|group| &group.mutations);
        let keys: Vec<Key> = rows.map(|mutation| mutation.key().clone()).collect();
        let rows: HashMap<Key, _> =
            self.batch_get(&keys).await?.into_iter().map(|row| (row.key, row.attributes)).collect();
        let mut report = RepairReport::default();
        for (position, RepairGroup { guard, mutations }) in groups.into_iter().enumerate() {
            let is_missing = |change: &&Mutation| change.requires_row() && !rows.contains_key(change.key());
            let mut gone = mutations.iter().find(is_missing).map(|change| change.key().clone());
            let (mut differences, mut changes) = (Vec::new(), Vec::new());
            for mutation in mutations {
                let found = drift(&mutation, rows.get(mutation.key()));
                changes.extend((!found.is_empty()).then_some(mutation));
                differences.extend(found);
            }
            if gone.is_none() && changes.is_empty() {
                continue;
            }
            let is_unchanged = match write && gone.is_none() {
                false => self.holds(&guard).await?,
                true => match self.change_rows(guard, changes).await {
                    Ok(()) => true,
                    Err(CommitError::PhotoMoved | CommitError::IdentityMoved) => false,
                    // The platform has deleted the photo meanwhile.
                    Err(CommitError::RowMissing(key)) => {
                        gone = Some(key);
                        true
                    }
                    Err(CommitError::Store(error)) => return Err(error),
                    Err(conflict) => {
                        let message = format!("conflict: {conflict}; run the command again");
                        return Err(StoreError::Dependency(DependencyError::Unavailable(message)));
                    }
                },
            };
            match (is_unchanged, gone) {
                (false, _) => report.outdated.push(position),
                (true, Some(key)) => report.gone.push(key),
                (true, None) => report.differences.extend(differences),
            }
        }
        Ok(report)
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let (mut found, mut from) = (Vec::new(), after.map(|face| face.image.clone()));
        loop {
            let images = self.images_of(None, from.as_ref(), PAGE + 1).await?;
            let is_last = images.len() <= PAGE;
            // One more than a page was requested: it begins the next page.
            from = images.get(PAGE).cloned();
            let photos = self.stored_face_items(images.into_iter().take(PAGE).collect()).await?;
            for photo in photos.values() {
                let is_wanted = |decided: &DecidedFace| {
                    decided.kept.person.is_none() && after.is_none_or(|after| decided.kept.face > *after)
                };
                found.extend(photo.faces()?.into_iter().filter(is_wanted));
            }
            if is_last || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let mut persons_by_event: BTreeMap<(ImageId, Seq), BTreeSet<PersonId>> = BTreeMap::new();
        let mut note = |decided: DecidedFace| {
            if let Some(person) = decided.kept.person {
                persons_by_event.entry((decided.kept.face.image, decided.seq)).or_default().insert(person);
            }
        };
        match of {
            None => self.scan_faces(note).await?,
            Some(of) => {
                for photo in self.face_items_of(of).await?.values() {
                    photo.faces()?.into_iter().for_each(&mut note);
                }
            }
        }
        let mut pairs = BTreeSet::new();
        for together in persons_by_event.values() {
            for (n, person) in together.iter().enumerate() {
                pairs.extend(together.iter().skip(n + 1).map(|other| (*person, *other)));
            }
        }
        pairs.retain(|(a, b)| of.is_none_or(|of| of.contains(a) || of.contains(b)));
        Ok(pairs)
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        let found = self.get_row(&self.tables.log, log_items::checkpoint_key(checkpoint)).await?;
        found.map_or_else(|| Ok(Position::default()), |fields| log_items::parse_position(&fields))
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        let mut row = log_items::checkpoint_key(checkpoint);
        row.insert("position".to_owned(), log_items::position_value(position));
        let put = || self.client.put_item().table_name(&self.tables.log).set_item(Some(row.clone())).send();
        with_retry(put).await?;
        Ok(())
    }

    /// Returns the sum of the digests of all rows modulo 2^256: a scan has no defined order, and addition is commutative.
    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        let (mut sum, mut rows, mut start) = ([0_u8; 32], 0, None);
        loop {
            let (page, next) = self.scan_page(&self.tables.platform, start, None).await?;
            for row in &page {
                let row = attribute_value::item(row)?.into_json().to_string();
                add(&mut sum, &Sha256::digest(row).into());
                rows += 1;
            }
            start = next;
            if start.is_none() {
                let sha256 = sum.iter().map(|byte| format!("{byte:02x}")).collect();
                return Ok(Fingerprint { sha256, rows });
            }
        }
    }
}

impl DynamoStore {
    /// Whether the guard of a group still holds. The rows were read before, so they are those of the guarded state if it does.
    async fn holds(&self, guard: &RepairGuard) -> Result<bool, StoreError> {
        match guard {
            RepairGuard::Photo(guard) => Ok(self.photo(&guard.image).await? == guard.before),
            RepairGuard::Identity(head) => {
                let tail = self.identity(head.seq).await?;
                Ok((tail.seq, tail.counter) == (head.seq, head.counter))
            }
        }
    }

    /// Changes rows of the platform's table without an event.
    async fn change_rows(&self, guard: RepairGuard, mutations: Vec<Mutation>) -> Result<(), CommitError> {
        let commit = Commit { mutations, ..Commit::without_events(Timestamp::from_millis(0), None) };
        let commit = match guard {
            RepairGuard::Photo(guard) => Commit { photo: Some(guard), ..commit },
            RepairGuard::Identity(head) => Commit { identity: Some(head), ..commit },
        };
        self.commit_with_retry(&commit).await.map(drop)
    }
}

/// Adds 256-bit big-endian numbers, modulo 2^256.
fn add(sum: &mut [u8; 32], more: &[u8; 32]) {
    let mut carry = false;
    for (digit, more) in sum.iter_mut().zip(more).rev() {
        let (total, over) = digit.overflowing_add(*more);
        let (total, once_more) = total.overflowing_add(u8::from(carry));
        (*digit, carry) = (total, over || once_more);
    }
}
