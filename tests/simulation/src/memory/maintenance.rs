//! Whole-table operations in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, drift};
use sparks_engine::{Checkpoint, DecidedFace, Fingerprint, Maintenance, RepairGroup, RepairReport, StoreError};

use super::{MemoryStore, store::FaceRow};

#[async_trait]
impl Maintenance for MemoryStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        let state = self.lock();
        Ok(state.log.keys().map(|lane| (*lane, state.head(*lane))).collect())
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        let state = self.lock();
        let rows = state.rows.after(after).take(most);
        Ok(rows.map(|(key, attributes)| Item { key: key.clone(), attributes: attributes.clone() }).collect())
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        let state = self.lock();
        Ok(images.iter().map(|image| state.states.get(image).cloned()).collect())
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        let _exclusive = self.transaction.lock().await;
        let mut state = self.lock();
        let mut report = RepairReport::default();
        for (position, RepairGroup { guard, mutations }) in groups.into_iter().enumerate() {
            let is_missing = |mutation: &&Mutation| mutation.requires_row() && state.rows.get(mutation.key()).is_none();
            let missing = mutations.iter().find(is_missing).map(|mutation| mutation.key().clone());
            let differences: Vec<_> =
                mutations.iter().flat_map(|mutation| drift(mutation, state.rows.get(mutation.key()))).collect();
            match missing {
                None if differences.is_empty() => {}
                _ if !state.holds(&guard)? => report.outdated.push(position),
                Some(missing) => report.gone.push(missing),
                None => {
                    report.differences.extend(differences);
                    if let Some(observer) = self.observer.as_ref().filter(|_| write) {
                        observer.repaired(&mutations);
                    }
                    for mutation in mutations.iter().filter(|_| write) {
                        let row = state.rows.get(mutation.key()).cloned();
                        if !drift(mutation, row.as_ref()).is_empty() {
                            state.rows.set(mutation.key(), mutation.apply(row));
                        }
                    }
                }
            }
        }
        Ok(report)
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let state = self.lock();
        let rows =
            state.faces.iter().filter(|(face, row)| row.stored.person.is_none() && after.is_none_or(|a| *face > a));
        Ok(rows.take(most).map(|(_, row)| row.decided_face()).collect())
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let state = self.lock();
        let rows: Vec<&FaceRow> = state.faces.values().collect();
        let mut pairs = BTreeSet::new();
        for photo in rows.chunk_by(|a, b| a.stored.face.image == b.stored.face.image) {
            for (n, a) in photo.iter().enumerate() {
                let others = photo[n + 1..].iter().filter(|b| b.decided == a.decided);
                for (a, b) in others.filter_map(|b| a.stored.person.zip(b.stored.person)).filter(|(a, b)| a != b) {
                    if of.is_none_or(|of| of.contains(&a) || of.contains(&b)) {
                        pairs.insert((a.min(b), a.max(b)));
                    }
                }
            }
        }
        Ok(pairs)
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        Ok(self.lock().checkpoint(checkpoint).clone())
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        self.lock().checkpoint(checkpoint).clone_from(position);
        Ok(())
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        let rows = self.rows();
        let mut digest = Sha256::new();
        for Item { key, attributes } in &rows {
            let attributes = serde_json::to_string(attributes).unwrap_or_default();
            for part in [&key.pk, &key.sk, &attributes] {
                digest.update(part.as_bytes());
                digest.update([0]);
            }
        }
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Fingerprint { sha256, rows: rows.len() as u64 })
    }
}
