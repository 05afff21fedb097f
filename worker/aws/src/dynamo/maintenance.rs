//! Walking and mending everything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Seq, drift};
use sparks_engine::{CommitError, DecidedFace, Fingerprint, Maintenance, Mark, Mended, Store, StoreError};

use super::{
    DynamoStore, faces, log,
    value::{self, key_fields},
};
use crate::trouble::patiently;

/// Photos whose faces are read at once.
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
            items.extend(rows.iter().map(value::item).collect::<Result<Vec<_>, _>>()?);
            start = next;
            if start.is_none() {
                break;
            }
        }
        Ok(items)
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        let keys = images.iter().map(log::state_key).collect();
        let mut states = HashMap::new();
        for row in self.batch(&self.tables.log, keys).await? {
            states.insert(value::text(&row, "PK")?.to_owned(), log::state(&row)?.0);
        }
        Ok(images.iter().map(|image| states.get(&format!("IMG#{image}")).cloned()).collect())
    }

    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool) -> Result<Mended, StoreError> {
        let keys: Vec<Key> = groups.iter().flatten().map(|mutation| mutation.key().clone()).collect();
        let rows: HashMap<Key, _> =
            self.batch_get(&keys).await?.into_iter().map(|row| (row.key, row.attributes)).collect();
        let mut mended = Mended::default();
        for group in groups {
            let gone = group.iter().find(|change| change.requires_row() && !rows.contains_key(change.key()));
            if let Some(change) = gone {
                mended.gone.push(change.key().clone());
                continue;
            }
            let (mut differences, mut changes) = (Vec::new(), Vec::new());
            for mutation in group {
                let found = drift(&mutation, rows.get(mutation.key()));
                changes.extend((!found.is_empty()).then_some(mutation));
                differences.extend(found);
            }
            if write && !changes.is_empty() {
                match self.change_rows(changes).await {
                    Ok(()) => {}
                    // The platform was faster: the photo was deleted.
                    Err(CommitError::RowMissing(key)) => {
                        mended.gone.push(key);
                        continue;
                    }
                    Err(CommitError::Store(error)) => return Err(error),
                    Err(conflict) => return Err(StoreError::Unavailable(format!("{conflict}: run it again"))),
                }
            }
            mended.differences.extend(differences);
        }
        Ok(mended)
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let (mut found, mut from) = (Vec::new(), after.map(|face| face.image.clone()));
        loop {
            let images = self.led_to(None, from.as_ref(), PAGE + 1).await?;
            let is_last = images.len() <= PAGE;
            // The first of the next page is read with it.
            from = images.get(PAGE).cloned();
            let photos = self.kept_faces(images.into_iter().take(PAGE).collect()).await?;
            for item in photos.values() {
                let is_wanted = |decided: &DecidedFace| {
                    decided.kept.person.is_none() && after.is_none_or(|after| decided.kept.face > *after)
                };
                found.extend(faces::faces(item)?.into_iter().filter(is_wanted));
            }
            if is_last || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    async fn company(&self, of: Option<&BTreeSet<PersonId>>) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let mut seen: BTreeMap<(ImageId, Seq), BTreeSet<PersonId>> = BTreeMap::new();
        let mut note = |decided: DecidedFace| {
            if let Some(person) = decided.kept.person {
                seen.entry((decided.kept.face.image, decided.seq)).or_default().insert(person);
            }
        };
        match of {
            None => self.every_face(note).await?,
            Some(of) => {
                for item in self.photos_led_to(of).await?.values() {
                    faces::faces(item)?.into_iter().for_each(&mut note);
                }
            }
        }
        let mut company = BTreeSet::new();
        for together in seen.values() {
            for (n, person) in together.iter().enumerate() {
                company.extend(together.iter().skip(n + 1).map(|other| (*person, *other)));
            }
        }
        company.retain(|(a, b)| of.is_none_or(|of| of.contains(a) || of.contains(b)));
        Ok(company)
    }

    async fn mark(&self, mark: Mark) -> Result<Position, StoreError> {
        let found = self.one(&self.tables.log, log::mark_key(mark)).await?;
        found.map_or_else(|| Ok(Position::default()), |fields| log::position(&fields))
    }

    async fn set_mark(&self, mark: Mark, position: &Position) -> Result<(), StoreError> {
        let mut row = log::mark_key(mark);
        row.insert("position".to_owned(), log::position_value(position));
        let put = || self.client.put_item().table_name(&self.tables.log).set_item(Some(row.clone())).send();
        patiently(put).await?;
        Ok(())
    }

    /// The sum of the digests of all rows, which come in no order.
    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        let (mut sum, mut rows, mut start) = ([0_u8; 32], 0, None);
        loop {
            let (page, next) = self.scan_page(&self.tables.platform, start, None).await?;
            for row in &page {
                let row = value::item(row)?.into_json().to_string();
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

/// Adds large numbers, and lets what is too large go.
fn add(sum: &mut [u8; 32], more: &[u8; 32]) {
    let mut carry = false;
    for (digit, more) in sum.iter_mut().zip(more).rev() {
        let (total, over) = digit.overflowing_add(*more);
        let (total, once_more) = total.overflowing_add(u8::from(carry));
        (*digit, carry) = (total, over || once_more);
    }
}
