//! Reads of stored faces and their signatures.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{FaceId, ImageId, PersonId, Position};
use sparks_engine::{DecidedFace, StoreError, StoredFace, Templates};

use super::{
    DynamoStore,
    attribute_value::{Fields, text},
    face_items::{self, PhotoItems},
    log_items::EventTemplates,
    read_rows::PartitionQuery,
};

impl DynamoStore {
    /// Returns the enrolled faces that are still stored. An event may be visible before the rest of its transaction, and a face
    /// that is wrongly taken for erased would never be matched: missing faces are read again with `TransactGetItems`, which
    /// does not see partial transactions.
    pub(super) async fn templates_of(
        &self,
        events: Vec<EventTemplates>,
        after: &Position,
    ) -> Result<Templates, StoreError> {
        let mut read = after.clone();
        events.iter().for_each(|event| read.advance(event.lane, event.seq));
        let ids: Vec<FaceId> = events.into_iter().flat_map(|event| event.templates).collect();
        let mut faces = self.stored_faces(&ids).await?;
        let found: BTreeSet<&FaceId> = faces.iter().map(|stored| &stored.face).collect();
        let missing: Vec<FaceId> = ids.into_iter().filter(|face| !found.contains(face)).collect();
        if !missing.is_empty() {
            let rows = self.transact_get(&self.tables.faces, item_keys(&missing)).await?;
            faces.extend(select(&missing, &rows)?);
        }
        Ok(Templates { faces: faces.into_iter().filter(|stored| stored.template).collect(), read })
    }

    /// Returns these faces, where they are stored.
    pub(super) async fn stored_faces(&self, wanted: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        select(wanted, &self.get_rows(&self.tables.faces, item_keys(wanted)).await?)
    }

    /// Returns the faces of these persons, the latest of each lane first.
    pub(super) async fn faces_of_persons(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        let persons: BTreeSet<PersonId> = persons.iter().copied().collect();
        let mut found = Vec::new();
        for photo in self.face_items_of(&persons).await?.values() {
            let is_theirs = |decided: &DecidedFace| decided.kept.person.is_some_and(|person| persons.contains(&person));
            found.extend(photo.faces()?.into_iter().filter(is_theirs));
        }
        found.sort_by(|a, b| b.seq.cmp(&a.seq).then(a.kept.face.n.cmp(&b.kept.face.n)));
        Ok(found)
    }

    /// Returns the items of all photos in which these persons may be.
    pub(super) async fn face_items_of(
        &self,
        persons: &BTreeSet<PersonId>,
    ) -> Result<BTreeMap<ImageId, PhotoItems>, StoreError> {
        let mut photos: BTreeMap<ImageId, PhotoItems> = BTreeMap::new();
        for person in persons {
            let images = self.images_of(Some(*person), None, usize::MAX).await?;
            let unread = images.into_iter().filter(|image| !photos.contains_key(image)).collect();
            photos.extend(self.stored_face_items(unread).await?);
        }
        Ok(photos)
    }

    /// Returns the photos in which faces of a person (or unidentified faces) may be, by ID, from this one on.
    pub(super) async fn images_of(
        &self,
        person: Option<PersonId>,
        from: Option<&ImageId>,
        most: usize,
    ) -> Result<Vec<ImageId>, StoreError> {
        let (pk, sort_key) = (face_items::lookup_partition(person), from.map(|image| (">=", image.to_string())));
        let query = PartitionQuery { table: &self.tables.faces, pk: &pk, sort_key, projection: None, limit: most };
        let rows = self.query_partition(query).await?;
        let image =
            |row: &Fields| text(row, "SK")?.parse().map_err(|e| StoreError::Unreadable(format!("lookup row: {e}")));
        rows.iter().map(image).collect()
    }
}

/// Returns the keys of the items that may hold these faces.
fn item_keys(wanted: &[FaceId]) -> Vec<Fields> {
    wanted.iter().flat_map(face_items::keys_of_face).collect()
}

/// Returns those of these faces that the items contain.
fn select(wanted: &[FaceId], items: &[Fields]) -> Result<Vec<StoredFace>, StoreError> {
    let wanted: BTreeSet<&FaceId> = wanted.iter().collect();
    let mut found = Vec::new();
    for item in items {
        let stored = face_items::faces(item)?.into_iter().map(|decided| decided.kept);
        found.extend(stored.filter(|stored| wanted.contains(&stored.face)));
    }
    Ok(found)
}
