//! Items of the signatures' table: items with the signatures and persons of a photo's faces, and lookup rows.
//!
//! An item holds [`FACES_PER_ITEM`] faces, by their numbers, so that neither the item nor an expression that changes all its
//! faces exceeds the limits of DynamoDB. The first item of a photo with several has their number. In logs of the first level an
//! item holds all faces of its photo, as earlier releases expect, so a face is looked for in the first item, too.
//!
//! The partition `PERSON#{person}` lists the photos of a person, and the partition [`UNIDENTIFIED`] those with unidentified
//! faces. Lookup rows are hints: the photo's item is authoritative, so a stale lookup row is harmless. They are written in
//! the transaction of the photo, because a global index is eventually consistent and erasing a person must find all faces.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::{
    error::BuildError,
    primitives::Blob,
    types::{AttributeValue, TransactWriteItem},
};
use sparks_domain::{FaceId, ImageId, Level, PersonId, Seq, Signature};
use sparks_engine::{Commit, DecidedFace, StoreError, StoredFace};

use super::{
    attribute_value::{Fields, key_fields, n, number, s, text},
    expression::Expression,
    log_items::SEVERAL_ITEMS,
};

/// The sort key of a photo's first item, and the beginning of those of the others.
const FACES: &str = "FACES";
/// The attribute of a photo's first item with the number of its items, where it has several.
const ITEMS: &str = "items";
/// The number of faces in an item.
const FACES_PER_ITEM: u16 = 100;
/// The partition of the lookup rows of unidentified faces.
pub(crate) const UNIDENTIFIED: &str = "NOBODY";

/// The stored items of a photo, by their position.
#[derive(Debug, Clone, Default)]
pub(crate) struct PhotoItems(pub BTreeMap<u16, Fields>);

impl PhotoItems {
    /// Returns the faces, by number.
    pub fn faces(&self) -> Result<Vec<DecidedFace>, StoreError> {
        let mut all = Vec::new();
        for item in self.0.values() {
            all.extend(faces(item)?);
        }
        all.sort_by_key(|decided| decided.kept.face.n);
        Ok(all)
    }

    /// Returns the position of the item that holds the face.
    fn position_of(&self, face: &FaceId) -> Option<u16> {
        let holds = |position: &u16| self.0.get(position).is_some_and(|item| item.contains_key(&face.n.to_string()));
        [position(face.n), 0].into_iter().find(holds)
    }

    /// Returns the number of items that the first one tells of.
    pub fn count(&self) -> Result<u16, StoreError> {
        let count = self.0.get(&0).map_or(Ok(0), |first| number(first, ITEMS))?;
        Ok(u16::try_from(count).unwrap_or(u16::MAX).max(1))
    }
}

/// Returns the position of the item for the face with this number.
fn position(n: u16) -> u16 {
    n / FACES_PER_ITEM
}

/// Returns the key of a photo's item at this position.
pub(crate) fn item_key(image: &ImageId, position: u16) -> Fields {
    match position {
        0 => key_fields(image.as_str(), FACES),
        position => key_fields(image.as_str(), &format!("{FACES}#{position}")),
    }
}

/// Returns the position of a photo's item; `None` for a lookup row.
pub(crate) fn item_position(fields: &Fields) -> Option<u16> {
    match text(fields, "SK").ok()?.strip_prefix(FACES)? {
        "" => Some(0),
        position => position.strip_prefix('#')?.parse().ok(),
    }
}

/// Returns the keys of all items that may hold this face.
pub(crate) fn keys_of_face(face: &FaceId) -> impl Iterator<Item = Fields> {
    let positions = BTreeSet::from([position(face.n), 0]);
    positions.into_iter().map(|position| item_key(&face.image, position))
}

/// Returns the partition of the lookup rows of a person, or of unidentified faces.
pub(crate) fn lookup_partition(person: Option<PersonId>) -> String {
    person.map_or_else(|| UNIDENTIFIED.to_owned(), |person| format!("PERSON#{person}"))
}

fn face_value(face: &StoredFace, Seq(seq): Seq) -> AttributeValue {
    let mut fields = Fields::from([
        ("model".to_owned(), s(&face.model)),
        ("signature".to_owned(), AttributeValue::B(Blob::new(face.signature.to_bytes()))),
        ("template".to_owned(), AttributeValue::Bool(face.template)),
        ("seq".to_owned(), n(seq)),
    ]);
    fields.extend(face.person.map(|person| ("person".to_owned(), n(person.number()))));
    AttributeValue::M(fields)
}

/// Returns the faces of a photo's item.
pub(crate) fn faces(fields: &Fields) -> Result<Vec<DecidedFace>, StoreError> {
    let image: ImageId = text(fields, "PK")?.parse().map_err(|e| StoreError::Unreadable(format!("face item: {e}")))?;
    let mut faces = Vec::new();
    for (name, value) in fields {
        let (Ok(number), Ok(face)) = (name.parse::<u16>(), value.as_m()) else { continue };
        faces.extend(decided(FaceId { image: image.clone(), n: number }, face)?);
    }
    Ok(faces)
}

fn decided(face: FaceId, fields: &Fields) -> Result<Option<DecidedFace>, StoreError> {
    let signature = fields.get("signature").and_then(|value| value.as_b().ok());
    let Some(signature) = signature.and_then(|bytes| Signature::from_bytes(bytes.as_ref())) else { return Ok(None) };
    let person = u32::try_from(number(fields, "person")?).ok().and_then(PersonId::new);
    let template = fields.get("template").is_some_and(|value| value.as_bool().copied().unwrap_or_default());
    let model = text(fields, "model")?.to_owned();
    let kept = StoredFace { face, model, signature, person, template };
    Ok(Some(DecidedFace { seq: Seq(number(fields, "seq")?), kept }))
}

/// Returns the photos whose items must be read before the commit can change them.
pub(crate) fn touched(commit: &Commit) -> BTreeSet<ImageId> {
    let identified = commit.identified.iter().map(|(face, _)| &face.image);
    let promoted = commit.promoted.iter().map(|face| &face.image);
    let erased = commit.erased.photos.iter().chain(commit.erased.faces.iter().map(|face| &face.image));
    identified.chain(promoted).chain(erased).cloned().collect()
}

/// Returns whether the commit stores faces in other items than the first, where the level of the log allows it.
pub(crate) fn has_several_items(commit: &Commit) -> bool {
    commit.signatures.iter().any(|face| position(face.face.n) > 0)
}

/// Returns the writes to the items of all photos whose faces the commit changes in a log of this level, given the stored items.
pub(crate) fn changes(
    table: &str,
    commit: &Commit,
    seq: Seq,
    stored: &BTreeMap<ImageId, PhotoItems>,
    level: Level,
) -> Result<Vec<(ImageId, TransactWriteItem)>, BuildError> {
    let new_position = |n: u16| if level < SEVERAL_ITEMS { 0 } else { position(n) };
    let mut items: BTreeMap<(&ImageId, u16), Expression> = BTreeMap::new();
    let mut last: BTreeMap<&ImageId, u16> = BTreeMap::new();
    for StoredFace { face, .. } in &commit.signatures {
        let last = last.entry(&face.image).or_default();
        *last = new_position(face.n).max(*last);
    }
    // Numbers of faces only grow, and so does the number of items.
    for (image, last) in last.iter().filter(|(_, last)| **last > 0) {
        items.entry((*image, 0)).or_default().set(ITEMS, n(last + 1));
    }
    for face in &commit.signatures {
        let item = items.entry((&face.face.image, new_position(face.face.n))).or_default();
        item.set(&face.face.n.to_string(), face_value(face, seq));
    }
    let position_of = |face: &FaceId| stored.get(&face.image).and_then(|items| items.position_of(face));
    for (face, person) in &commit.identified {
        let (Some(position), name) = (position_of(face), face.n.to_string()) else { continue };
        let item = items.entry((&face.image, position)).or_default();
        item.set_within(&name, "person", n(person.number())).if_has(&name);
    }
    for face in &commit.promoted {
        let (Some(position), name) = (position_of(face), face.n.to_string()) else { continue };
        let item = items.entry((&face.image, position)).or_default();
        item.set_within(&name, "template", AttributeValue::Bool(true)).if_has(&name);
    }
    for face in &commit.erased.faces {
        let Some(position) = position_of(face) else { continue };
        items.entry((&face.image, position)).or_default().remove(&face.n.to_string()).if_exists();
    }
    let mut changes = Vec::new();
    for image in commit.erased.photos.iter().collect::<BTreeSet<_>>() {
        items.retain(|(changed, _), _| *changed != image);
        for position in erased_positions(commit, image, stored.get(image)) {
            changes.push((image.clone(), Expression::default().delete(table, item_key(image, position))?));
        }
    }
    for ((image, position), expression) in items {
        changes.push((image.clone(), expression.on(table, item_key(image, position))?));
    }
    Ok(changes)
}

/// Returns the positions of all items of a photo that is erased: those that were read, and those that its state tells of.
fn erased_positions(commit: &Commit, image: &ImageId, stored: Option<&PhotoItems>) -> BTreeSet<u16> {
    let state = commit.photo.as_ref().filter(|guard| guard.image == *image).and_then(|guard| guard.before.as_ref());
    let by_state = state.map_or(0, |state| position(state.faces.saturating_sub(1)));
    (0..=by_state).chain(stored.into_iter().flat_map(|stored| stored.0.keys().copied())).collect()
}

/// Returns the lookup rows of the faces that the commit stores or identifies.
pub(crate) fn lookup_rows(commit: &Commit) -> BTreeSet<(String, ImageId)> {
    let erased = |image: &ImageId| commit.erased.photos.contains(image);
    let stored = commit.signatures.iter().map(|face| (lookup_partition(face.person), face.face.image.clone()));
    let identified =
        commit.identified.iter().map(|(face, person)| (lookup_partition(Some(*person)), face.image.clone()));
    stored.chain(identified).filter(|(_, image)| !erased(image)).collect()
}

/// Returns the lookup rows of the faces in these items.
pub(crate) fn lookup_rows_of(items: &BTreeMap<ImageId, PhotoItems>) -> Result<BTreeSet<(String, ImageId)>, StoreError> {
    let mut rows = BTreeSet::new();
    for (image, item) in items {
        rows.extend(item.faces()?.into_iter().map(|decided| (lookup_partition(decided.kept.person), image.clone())));
        rows.insert((UNIDENTIFIED.to_owned(), image.clone()));
    }
    Ok(rows)
}
