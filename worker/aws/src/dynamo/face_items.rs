//! Items of the signatures' table: one item per photo with the signatures and persons of its faces, and lookup rows.
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
use sparks_domain::{FaceId, ImageId, PersonId, Seq, Signature};
use sparks_engine::{Commit, DecidedFace, StoreError, StoredFace};

use super::{
    attribute_value::{Fields, key_fields, n, number, s, text},
    expression::Expression,
};

const FACES: &str = "FACES";
/// The partition of the lookup rows of unidentified faces.
pub(crate) const UNIDENTIFIED: &str = "NOBODY";

/// Returns the key of a photo's item.
pub(crate) fn photo_key(image: &ImageId) -> Fields {
    key_fields(image.as_str(), FACES)
}

/// Returns the partition of the lookup rows of a person, or of unidentified faces.
pub(crate) fn lookup_partition(person: Option<PersonId>) -> String {
    person.map_or_else(|| UNIDENTIFIED.to_owned(), |person| format!("PERSON#{person}"))
}

/// Returns whether the item is a photo's, not a lookup row.
pub(crate) fn is_photo(fields: &Fields) -> bool {
    text(fields, "SK").is_ok_and(|sk| sk == FACES)
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

/// Returns the faces of a photo's item, by number.
pub(crate) fn faces(fields: &Fields) -> Result<Vec<DecidedFace>, StoreError> {
    let image: ImageId = text(fields, "PK")?.parse().map_err(|e| StoreError::Unreadable(format!("face item: {e}")))?;
    let mut faces = Vec::new();
    for (name, value) in fields {
        let (Ok(number), Ok(face)) = (name.parse::<u16>(), value.as_m()) else { continue };
        faces.extend(decided(FaceId { image: image.clone(), n: number }, face)?);
    }
    faces.sort_by_key(|decided| decided.kept.face.n);
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

/// Returns the writes to the items of all photos whose faces the commit changes, given the stored items.
pub(crate) fn changes(
    table: &str,
    commit: &Commit,
    seq: Seq,
    stored: &BTreeMap<ImageId, Fields>,
) -> Result<Vec<(ImageId, TransactWriteItem)>, BuildError> {
    let mut photos: BTreeMap<&ImageId, Expression> = BTreeMap::new();
    for face in &commit.signatures {
        photos.entry(&face.face.image).or_default().set(&face.face.n.to_string(), face_value(face, seq));
    }
    let is_stored = |face: &FaceId| stored.get(&face.image).is_some_and(|item| item.contains_key(&face.n.to_string()));
    for (face, person) in commit.identified.iter().filter(|(face, _)| is_stored(face)) {
        let name = face.n.to_string();
        photos.entry(&face.image).or_default().set_within(&name, "person", n(person.number())).if_has(&name);
    }
    for face in commit.promoted.iter().filter(|face| is_stored(face)) {
        let (name, template) = (face.n.to_string(), AttributeValue::Bool(true));
        photos.entry(&face.image).or_default().set_within(&name, "template", template).if_has(&name);
    }
    for face in commit.erased.faces.iter().filter(|face| is_stored(face)) {
        photos.entry(&face.image).or_default().remove(&face.n.to_string()).if_exists();
    }
    let mut changes = Vec::new();
    for image in commit.erased.photos.iter().collect::<BTreeSet<_>>() {
        photos.remove(image);
        changes.push((image.clone(), Expression::default().delete(table, photo_key(image))?));
    }
    for (image, expression) in photos {
        changes.push((image.clone(), expression.on(table, photo_key(image))?));
    }
    Ok(changes)
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
pub(crate) fn lookup_rows_of(items: &BTreeMap<ImageId, Fields>) -> Result<BTreeSet<(String, ImageId)>, StoreError> {
    let mut rows = BTreeSet::new();
    for (image, item) in items {
        rows.extend(faces(item)?.into_iter().map(|decided| (lookup_partition(decided.kept.person), image.clone())));
        rows.insert((UNIDENTIFIED.to_owned(), image.clone()));
    }
    Ok(rows)
}
