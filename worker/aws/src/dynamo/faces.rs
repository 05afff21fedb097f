//! What faces look like and whose they are: one item a photo, and rows that lead to it.
//!
//! A row `PERSON#{person}` / `{imageId}` says where to look for somebody's faces, and `NOBODY` / `{imageId}` for faces that are
//! nobody's. They only lead: what the photo's item says counts, so one that leads nowhere does no harm.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::{
    error::BuildError,
    primitives::Blob,
    types::{AttributeValue, TransactWriteItem},
};
use sparks_domain::{FaceId, ImageId, PersonId, Seq, Signature};
use sparks_engine::{Commit, DecidedFace, StoreError, StoredFace};

use super::{
    expression::Expression,
    value::{Fields, key_fields, n, number, s, text},
};

const FACES: &str = "FACES";
/// Whom rows lead to whose faces are nobody's.
pub(crate) const NOBODY: &str = "NOBODY";

/// Where the faces of a photo are.
pub(crate) fn photo_key(image: &ImageId) -> Fields {
    key_fields(image.as_str(), FACES)
}

/// The partition of the rows that lead to somebody's faces.
pub(crate) fn leads_to(person: Option<PersonId>) -> String {
    person.map_or_else(|| NOBODY.to_owned(), |person| format!("PERSON#{person}"))
}

/// Whether the item is a photo's, and no row that leads to one.
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

/// The faces that a photo's item keeps, by number.
pub(crate) fn faces(fields: &Fields) -> Result<Vec<DecidedFace>, StoreError> {
    let image: ImageId = text(fields, "PK")?.parse().map_err(|e| StoreError::Unreadable(format!("faces: {e}")))?;
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

/// The photos whose faces the commit changes in a way that depends on what is kept.
pub(crate) fn touched(commit: &Commit) -> BTreeSet<ImageId> {
    let identified = commit.identified.iter().map(|(face, _)| &face.image);
    let promoted = commit.promoted.iter().map(|face| &face.image);
    let erased = commit.erased.photos.iter().chain(commit.erased.faces.iter().map(|face| &face.image));
    identified.chain(promoted).chain(erased).cloned().collect()
}

/// What the commit makes of the faces of each photo, given what is kept of those that depend on it.
pub(crate) fn changes(
    table: &str,
    commit: &Commit,
    seq: Seq,
    kept: &BTreeMap<ImageId, Fields>,
) -> Result<Vec<(ImageId, TransactWriteItem)>, BuildError> {
    let mut photos: BTreeMap<&ImageId, Expression> = BTreeMap::new();
    for face in &commit.signatures {
        photos.entry(&face.face.image).or_default().set(&face.face.n.to_string(), face_value(face, seq));
    }
    let is_kept = |face: &FaceId| kept.get(&face.image).is_some_and(|item| item.contains_key(&face.n.to_string()));
    for (face, person) in commit.identified.iter().filter(|(face, _)| is_kept(face)) {
        let name = face.n.to_string();
        photos.entry(&face.image).or_default().set_within(&name, "person", n(person.number())).if_has(&name);
    }
    for face in commit.promoted.iter().filter(|face| is_kept(face)) {
        let (name, template) = (face.n.to_string(), AttributeValue::Bool(true));
        photos.entry(&face.image).or_default().set_within(&name, "template", template).if_has(&name);
    }
    for face in commit.erased.faces.iter().filter(|face| is_kept(face)) {
        photos.entry(&face.image).or_default().remove(&face.n.to_string()).if_there();
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

/// The rows that lead to faces which the commit keeps or identifies.
pub(crate) fn leads(commit: &Commit) -> BTreeSet<(String, ImageId)> {
    let erased = |image: &ImageId| commit.erased.photos.contains(image);
    let kept = commit.signatures.iter().map(|face| (leads_to(face.person), face.face.image.clone()));
    let identified = commit.identified.iter().map(|(face, person)| (leads_to(Some(*person)), face.image.clone()));
    kept.chain(identified).filter(|(_, image)| !erased(image)).collect()
}

/// The rows that lead to the faces of these items.
pub(crate) fn leads_of(items: &BTreeMap<ImageId, Fields>) -> Result<BTreeSet<(String, ImageId)>, StoreError> {
    let mut leads = BTreeSet::new();
    for (image, item) in items {
        leads.extend(faces(item)?.into_iter().map(|decided| (leads_to(decided.kept.person), image.clone())));
        leads.insert((NOBODY.to_owned(), image.clone()));
    }
    Ok(leads)
}
