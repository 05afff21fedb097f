//! Adoption of rows that a previous worker wrote: from rows to events.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    AdoptedTagging, Attributes, CropAnalysis, CropFace, DetectedFace, Email, FaceId, ImageId, Item, Origin,
    PersonAdopted, PersonId, PersonRegistry, PhotoAdopted, PhotoState, Policy, Seq, Signature, TaggingKey, Timestamp,
    Version, object_keys,
};

/// A row that cannot be adopted. It is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum AdoptionIssue {
    /// Not the ID of a person.
    #[error("{0}: skipped; only person1, person2, ... can be adopted")]
    NotAPerson(String),
    /// A person who was forgotten or merged into another.
    #[error("{0}: skipped; the log records that the person was forgotten or merged (see `sparks verify`)")]
    ForgottenOrMerged(PersonId),
    /// A tag of a person without a PERSON row.
    #[error("{0} / PERSON#{1}: skipped; {1} has no row. Delete the tag, or create the row and repeat the adoption")]
    NoPerson(ImageId, PersonId),
    /// A tag whose partition key is not the ID of a photo.
    #[error("{0}: skipped; only photos whose ID is a UUID or a KSUID can be adopted")]
    NotAPhoto(String),
    /// A tag of a photo without an IMAGE row.
    #[error("{0} / PERSON#{1}: skipped; the photo has no IMAGE row. Delete the tag")]
    NoPhoto(ImageId, PersonId),
}

/// A PERSON row of a previous worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRow {
    /// The person.
    pub person: PersonId,
    display_name: String,
    created_at: Timestamp,
}

impl PersonRow {
    /// Reads a PERSON row. A missing creation time is `now`.
    pub fn read(row: &Item, now: Timestamp) -> Result<Self, AdoptionIssue> {
        let invalid = || AdoptionIssue::NotAPerson(row.key.pk.clone());
        let person: PersonId = row.key.sk.parse().map_err(|_| invalid())?;
        if row.key != crate::Key::person(person) {
            return Err(invalid());
        }
        let name = row.text("displayName").filter(|name| !name.is_empty()).map(str::to_owned);
        let created_at = time(row.attributes.get("createdAt")).unwrap_or(now);
        Ok(Self { person, display_name: name.unwrap_or_else(|| person.to_string()), created_at })
    }

    /// Returns the event that adopts the person.
    pub fn into_event(self, analyzer: &str, likeness: CropAnalysis, identity_seq: Seq) -> PersonAdopted {
        let Self { person, display_name, created_at } = self;
        PersonAdopted {
            v: Version,
            person,
            display_name,
            created_at,
            crop_key: object_keys::crop(person),
            origin: Origin::Table,
            face: FaceId::of_crop(person),
            analyzer: analyzer.to_owned(),
            likeness,
            identity_seq,
        }
    }
}

impl CropAnalysis {
    /// Returns the analysis of a crop with these faces, of which the largest is the person's; and its signature, if its
    /// quality is sufficient for a template.
    pub fn new(version: String, faces: Vec<DetectedFace>, policy: &Policy) -> (Self, Option<Signature>) {
        let area = |face: &DetectedFace| face.bounds.width * face.bounds.height;
        let largest = faces.into_iter().reduce(|best, face| if area(&face) > area(&best) { face } else { best });
        let Some(face) = largest else { return (Self::NoFace, None) };
        let face = face.rounded();
        let is_usable = policy.is_template_quality(&face);
        let DetectedFace { bounds, landmarks, quality, confidence, model, signature, .. } = face;
        let crop_face = CropFace { version, bounds, landmarks, quality, confidence, model };
        match signature.filter(|_| is_usable) {
            Some(signature) => (Self::Usable(crop_face), Some(signature)),
            None => (Self::TooPoor(crop_face), None),
        }
    }

    /// Returns why the crop gives no template.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Usable(_) => None,
            Self::NoCrop => Some("the object does not exist".into()),
            Self::Unreadable(reason) => Some(reason.clone()),
            Self::NoFace => Some("no face was detected".into()),
            Self::TooPoor(face) => {
                let quality = face.quality;
                Some(format!(
                    "the quality of its face is too low: {:.0} px, sharpness {:.2}",
                    quality.size, quality.sharpness
                ))
            }
        }
    }
}

/// The rows of a photo that a previous worker tagged.
#[derive(Debug, Clone, PartialEq)]
pub struct TaggedPhotoRows<'a> {
    /// The photo.
    pub image: &'a ImageId,
    /// All rows of its partition.
    pub rows: &'a [Item],
    /// Its state in the log.
    pub state: Option<&'a PhotoState>,
    /// What `TAGGING.s3Key` becomes if a row has none.
    pub tagging_key: TaggingKey,
}

impl TaggedPhotoRows<'_> {
    /// Returns the event that adopts the tags that the log does not record, if any, and the tags that cannot be
    /// adopted.
    pub fn adoption_event(
        &self,
        registry: &PersonRegistry,
        now: Timestamp,
    ) -> (Option<PhotoAdopted>, Vec<AdoptionIssue>) {
        let recorded = self.state.map(|state| registry.merges().all_current(&state.persons)).unwrap_or_default();
        let row = self.rows.iter().find_map(|row| Some((row, uploader(row)?)));
        let mut issues = Vec::new();
        let mut taggings: BTreeMap<PersonId, AdoptedTagging> = BTreeMap::new();
        for tag in self.rows.iter().filter(|row| row.key.sk.starts_with("PERSON#")) {
            match tagged_person(tag) {
                Err(issue) => issues.push(issue),
                Ok(person) if recorded.contains(&person) => {}
                Ok(person) if registry.get(person).is_none() && registry.is_forgotten(person) => {
                    issues.push(AdoptionIssue::ForgottenOrMerged(person));
                }
                Ok(person) if registry.merges().is_absorbed(person) => {
                    issues.push(AdoptionIssue::ForgottenOrMerged(person))
                }
                Ok(person) if registry.get(person).is_none() => {
                    issues.push(AdoptionIssue::NoPerson(self.image.clone(), person));
                }
                Ok(person) if row.is_none() => issues.push(AdoptionIssue::NoPhoto(self.image.clone(), person)),
                Ok(person) => {
                    let image = row.as_ref().map(|(row, _)| *row);
                    taggings.insert(person, self.tagging(person, tag, image, now));
                }
            }
        }
        let adopted = row.filter(|_| !taggings.is_empty()).map(|(row, uploader)| PhotoAdopted {
            v: Version,
            image_id: self.image.clone(),
            uploader,
            original_key: row.text("s3Key").map(str::to_owned),
            images: images(row),
            origin: Origin::Table,
            taggings: taggings.into_values().collect(),
            follows: self.state.map(|state| state.seq),
        });
        (adopted, issues)
    }

    fn tagging(&self, person: PersonId, tag: &Item, image: Option<&Item>, now: Timestamp) -> AdoptedTagging {
        let fallback = || match self.tagging_key {
            TaggingKey::Original => image?.text("s3Key").map(str::to_owned),
            TaggingKey::Large => image?.attributes.get("images")?.get("large")?.as_str().map(str::to_owned),
        };
        AdoptedTagging {
            person,
            s3_key: tag.text("s3Key").map(str::to_owned).or_else(fallback),
            images: images(tag),
            created_at: time(tag.attributes.get("createdAt")).unwrap_or(now),
        }
    }
}

/// Returns the person of a TAGGING row.
pub fn tagged_person(tag: &Item) -> Result<PersonId, AdoptionIssue> {
    let name = tag.key.sk.strip_prefix("PERSON#").unwrap_or_default();
    name.parse().map_err(|_| AdoptionIssue::NotAPerson(tag.key.to_string()))
}

fn uploader(row: &Item) -> Option<Email> {
    row.key.sk.strip_prefix("UPLOADED_BY#")?.parse().ok()
}

fn images(row: &Item) -> Attributes {
    row.attributes.get("images").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Reads a time of a row: seconds since 1970, as the platform specifies, or milliseconds, or an ISO time.
fn time(value: Option<&Value>) -> Option<Timestamp> {
    const LATEST_SECONDS: i64 = 100_000_000_000; // larger numbers are milliseconds
    match value? {
        Value::Number(number) => {
            let number = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))?;
            let is_seconds = number.abs() < LATEST_SECONDS;
            Some(Timestamp::from_millis(if is_seconds { number.saturating_mul(1000) } else { number }))
        }
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
