//! Data of another worker that was in use before: persons, tags and a counter in the table, variants in the bucket, no event log.

use serde_json::{Value, json};
use sparks_domain::{Key, PersonId, Presence};
use sparks_engine::{Commit, Content, Objects, PutMode, Store};

use crate::{
    album::{Photo, photo},
    platform_actions::original_key,
    samples::{empty_commit, set, uploader},
    worker::image_of,
};

/// The other worker's counter, higher than every person number in use.
pub const COUNTER: u32 = 77;

/// The creation time of all legacy rows, in seconds since 1970.
pub const CREATED: u64 = 1_600_000_000;

/// Legacy rows and objects.
#[derive(Debug, Clone, Default)]
pub struct LegacyData {
    /// The rows, with PK and SK as attributes.
    pub rows: Vec<Value>,
    /// The objects by key.
    pub objects: Vec<(String, Vec<u8>)>,
}

/// Returns the person that the other worker allocated for an identity.
///
/// # Panics
///
/// Panics if the identity is too large for a person number.
pub fn person_of(identity: usize) -> PersonId {
    let number = u32::try_from(identity + 1).expect("identity fits a person number") * 10;
    PersonId::new(number).expect("number from 1")
}

/// Returns the display name that the other worker's data has for an identity.
pub fn name_of(identity: usize) -> String {
    format!("Name {identity}")
}

impl LegacyData {
    /// Creates the data for these photos, with every person in them tagged.
    pub fn of(photos: &[Photo]) -> Self {
        let mut legacy = Self::default();
        let mut identities: Vec<usize> = photos.iter().flat_map(|photo| photo.identities.clone()).collect();
        identities.sort_unstable();
        identities.dedup();
        for identity in identities {
            legacy.add_person(identity);
        }
        for photo in photos {
            legacy.add_photo(photo);
        }
        let counter = Key::counter();
        legacy.add(&counter, json!({ "entityType": "UNKNOWN_PERSONS", "limit": COUNTER }));
        let user = uploader();
        legacy.add(&Key::user(&user), json!({ "entityType": "USER", "email": user, "username": "ann", "karma": 7 }));
        legacy.add(&Key::limit(&user), json!({ "entityType": "DEFAULT_LIMIT", "limit": 500 }));
        legacy
    }

    /// Adds a person with a crop that is cut from none of the photos.
    pub fn add_person(&mut self, identity: usize) {
        let (person, crop) = (person_of(identity), format!("persons/{}.jpg", person_of(identity)));
        let row = json!({ "entityType": "PERSON", "displayName": name_of(identity), "s3Key": crop,
            "createdAt": CREATED + identity as u64, "collection": "old", "faceId": format!("face-{identity}") });
        self.add(&Key::person(person), row);
        self.objects.push((crop, photo(9_000 + identity as u64, &[identity]).jpeg));
    }

    /// Adds a row.
    pub fn add(&mut self, Key { pk, sk }: &Key, mut row: Value) {
        row["PK"] = pk.as_str().into();
        row["SK"] = sk.as_str().into();
        self.rows.push(row);
    }

    fn add_photo(&mut self, photo: &Photo) {
        let (image, user) = (image_of(photo), uploader());
        let [large, medium] = ["large", "medium"].map(|name| format!("processed/{image}_{name}.webp"));
        let variants = json!({ "large": large, "medium": medium, "processedAt": "2020-09-13T12:26:40.000Z" });
        let row = json!({ "entityType": "IMAGE", "imageId": image, "assetType": "IMAGE", "uploadedBy": user,
            "uploaded_datetime": "2020-09-13T12:26:40.000Z", "lastModified": "2020-09-13T12:26:40.000Z",
            "s3Key": original_key(photo), "images": variants, "tags": ["sea"], "description": "before", "stars": 4.5 });
        self.add(&Key::image(&image, &user), row);
        for identity in &photo.identities {
            let person = person_of(*identity);
            let tag = json!({ "entityType": format!("TAGGING#{person}"), "s3Key": large, "createdAt": CREATED + 100,
                "images": { "large": large, "medium": medium }, "similarity": 97.25 });
            self.add(&Key::tagging(&image, person), tag);
        }
        self.objects.push((original_key(photo), photo.jpeg.clone()));
        self.objects.extend([large, medium].map(|key| (key, b"a variant".to_vec())));
    }

    /// Writes all rows and objects.
    ///
    /// # Panics
    ///
    /// Panics if the backend refuses a write.
    pub async fn write(&self, store: &dyn Store, objects: &dyn Objects) {
        for (key, bytes) in &self.objects {
            let content = Content::image("image/jpeg");
            objects.put(key, bytes.clone(), content, PutMode::Replace).await.expect("object is stored");
        }
        for row in &self.rows {
            let mut attributes = row.clone();
            let fields = attributes.as_object_mut().expect("row is an object");
            let (pk, sk) = (fields.remove("PK"), fields.remove("SK"));
            let text =
                |value: Option<Value>| value.and_then(|v| v.as_str().map(str::to_owned)).expect("key is a string");
            let key = Key::new(text(pk), text(sk));
            let commit = Commit { mutations: vec![set(&key, Presence::Any, attributes)], ..empty_commit() };
            store.commit(&commit).await.expect("row is written");
        }
    }

    /// Returns the rows expected after adoption: the IMAGE rows name the tagged persons, and the counter is at least the highest
    /// person number in use.
    pub fn expected_after_adoption(&self) -> Vec<Value> {
        let tagged = |image: &Value| {
            let tags = self.rows.iter().filter(|row| row["PK"] == *image);
            let tags = tags.filter_map(|row| row["SK"].as_str()?.strip_prefix("PERSON#")?.parse::<PersonId>().ok());
            let mut persons: Vec<PersonId> = tags.collect();
            persons.sort_unstable();
            json!(persons)
        };
        let mut rows = self.rows.clone();
        for row in rows.iter_mut().filter(|row| row["entityType"] == "IMAGE") {
            row["persons"] = tagged(&row["PK"]);
        }
        let persons = self.rows.iter().filter_map(|row| row["SK"].as_str()?.parse::<PersonId>().ok());
        let highest = persons.map(PersonId::number).max().unwrap_or_default().max(COUNTER);
        for row in rows.iter_mut().filter(|row| row["entityType"] == "UNKNOWN_PERSONS") {
            row["limit"] = highest.into();
        }
        sorted(rows)
    }
}

/// Sorts rows by key.
pub fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    rows.sort_by_key(|row| (text(&row["PK"]), text(&row["SK"])));
    rows
}
