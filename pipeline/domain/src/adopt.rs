//! Rows that somebody else made, and the events by which they become ours.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    AdoptedTagging, Attributes, CropFace, Email, FaceId, ImageId, Item, Likeness, Origin, People, PersonAdopted,
    PersonId, PhotoAdopted, PhotoState, Policy, Projection, SeenFace, Seq, Signature, TaggingKey, Timestamp, Version,
};

/// A row that is called like one of ours and cannot become ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Strange {
    /// Nobody of ours is called so.
    #[error("{0}: only person1, person2, ... can be taken over; left alone")]
    NotAPerson(String),
    /// A number that was somebody's, and is nobody's or somebody else's by now.
    #[error("{0}: the log says that they are gone, or somebody else by now; left alone (see `sparks verify`)")]
    Gone(PersonId),
    /// A tag without its person.
    #[error("{0} / PERSON#{1}: there is no row of {1}; left alone (delete the tag, or make the row and repeat this)")]
    NoPerson(ImageId, PersonId),
    /// A tag of something that is no photo.
    #[error("{0}: only photos with a UUID or a KSUID for a name can be taken over; left alone")]
    NotAPhoto(String),
    /// A tag without its photo.
    #[error("{0} / PERSON#{1}: there is no IMAGE row of the photo; left alone (delete the tag)")]
    NoPhoto(ImageId, PersonId),
}

/// A person as somebody else's row has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPerson {
    /// Their number.
    pub person: PersonId,
    display_name: String,
    created_at: Timestamp,
}

impl FoundPerson {
    /// The person of a PERSON row; what the row does not tell is as if they were made `now`.
    pub fn read(row: &Item, now: Timestamp) -> Result<Self, Strange> {
        let strange = || Strange::NotAPerson(row.key.pk.clone());
        let person: PersonId = row.key.sk.parse().map_err(|_| strange())?;
        if row.key != crate::Key::person(person) {
            return Err(strange());
        }
        let name = row.text("displayName").filter(|name| !name.is_empty()).map(str::to_owned);
        let created_at = time(row.attributes.get("createdAt")).unwrap_or(now);
        Ok(Self { person, display_name: name.unwrap_or_else(|| person.to_string()), created_at })
    }

    /// The event by which they become ours.
    pub fn adopted(self, analyzer: &str, likeness: Likeness, identity_seq: Seq) -> PersonAdopted {
        let Self { person, display_name, created_at } = self;
        PersonAdopted {
            v: Version,
            person,
            display_name,
            created_at,
            crop_key: Projection::crop_key(person),
            origin: Origin::Table,
            face: FaceId::of_crop(person),
            analyzer: analyzer.to_owned(),
            likeness,
            identity_seq,
        }
    }
}

impl Likeness {
    /// What a picture of somebody tells, in which these faces were seen: the largest is theirs. What it looks like comes
    /// along, where it is good enough to know them by.
    pub fn of(version: String, faces: Vec<SeenFace>, policy: &Policy) -> (Self, Option<Signature>) {
        let room = |face: &SeenFace| face.bounds.width * face.bounds.height;
        let largest = faces.into_iter().reduce(|best, face| if room(&face) > room(&best) { face } else { best });
        let Some(face) = largest else { return (Self::NoFace, None) };
        let face = face.rounded();
        let is_good = policy.may_be_known_by(&face);
        let SeenFace { bounds, landmarks, quality, confidence, model, signature, .. } = face;
        let seen = CropFace { version, bounds, landmarks, quality, confidence, model };
        match signature.filter(|_| is_good) {
            Some(signature) => (Self::Known(seen), Some(signature)),
            None => (Self::TooPoor(seen), None),
        }
    }

    /// Why nobody is known by it, in words.
    pub fn lack(&self) -> Option<String> {
        match self {
            Self::Known(_) => None,
            Self::NoCrop => Some("there is no such object".into()),
            Self::Unreadable(reason) => Some(reason.clone()),
            Self::NoFace => Some("there is no face in it".into()),
            Self::TooPoor(face) => {
                let quality = face.quality;
                Some(format!("its face is too poor: {:.0} px, sharpness {:.2}", quality.size, quality.sharpness))
            }
        }
    }
}

/// A photo that somebody else tagged, as its rows stand.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPhoto<'a> {
    /// The photo.
    pub image: &'a ImageId,
    /// All rows under its name.
    pub rows: &'a [Item],
    /// What the log knows of it.
    pub state: Option<&'a PhotoState>,
    /// What `TAGGING.s3Key` holds where a row has none.
    pub tagging_key: TaggingKey,
}

impl FoundPhoto<'_> {
    /// The event by which tags that the log does not name become ours, if there are any; and those that cannot.
    pub fn adopted(&self, people: &People, now: Timestamp) -> (Option<PhotoAdopted>, Vec<Strange>) {
        let named = self.state.map(|state| people.merges().all_now(&state.persons)).unwrap_or_default();
        let row = self.rows.iter().find_map(|row| Some((row, uploader(row)?)));
        let mut strange = Vec::new();
        let mut taggings: BTreeMap<PersonId, AdoptedTagging> = BTreeMap::new();
        for tag in self.rows.iter().filter(|row| row.key.sk.starts_with("PERSON#")) {
            match person_of(tag) {
                Err(odd) => strange.push(odd),
                Ok(person) if named.contains(&person) => {}
                Ok(person) if people.get(person).is_none() && people.is_forgotten(person) => {
                    strange.push(Strange::Gone(person));
                }
                Ok(person) if people.merges().is_absorbed(person) => strange.push(Strange::Gone(person)),
                Ok(person) if people.get(person).is_none() => {
                    strange.push(Strange::NoPerson(self.image.clone(), person));
                }
                Ok(person) if row.is_none() => strange.push(Strange::NoPhoto(self.image.clone(), person)),
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
            images: pictures(row),
            origin: Origin::Table,
            taggings: taggings.into_values().collect(),
            follows: self.state.map(|state| state.seq),
        });
        (adopted, strange)
    }

    fn tagging(&self, person: PersonId, tag: &Item, image: Option<&Item>, now: Timestamp) -> AdoptedTagging {
        let otherwise = || match self.tagging_key {
            TaggingKey::Original => image?.text("s3Key").map(str::to_owned),
            TaggingKey::Large => image?.attributes.get("images")?.get("large")?.as_str().map(str::to_owned),
        };
        AdoptedTagging {
            person,
            s3_key: tag.text("s3Key").map(str::to_owned).or_else(otherwise),
            images: pictures(tag),
            created_at: time(tag.attributes.get("createdAt")).unwrap_or(now),
        }
    }
}

/// The person whom a TAGGING row names.
pub fn person_of(tag: &Item) -> Result<PersonId, Strange> {
    let name = tag.key.sk.strip_prefix("PERSON#").unwrap_or_default();
    name.parse().map_err(|_| Strange::NotAPerson(tag.key.to_string()))
}

fn uploader(row: &Item) -> Option<Email> {
    row.key.sk.strip_prefix("UPLOADED_BY#")?.parse().ok()
}

fn pictures(row: &Item) -> Attributes {
    row.attributes.get("images").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// A time as rows write it: seconds since 1970, as the contract says, or what else can only be meant as a time.
fn time(value: Option<&Value>) -> Option<Timestamp> {
    const LATEST_SECONDS: i64 = 100_000_000_000; // what is more can only be milliseconds
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
