//! Whether the table is what everybody wrote, row by row.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sparks_domain::{Email, Key, PersonId};

use super::{Host, Platform, Upload};
use crate::{platform::original, worker::image_of};

/// What is ours in rows of the platform.
const OURS: [&str; 3] = ["images", "persons", "lastModified"];

impl Platform {
    /// What `sparks verify --repair` found must be about what the platform itself took away.
    ///
    /// # Panics
    ///
    /// Where it is about anything else.
    pub fn check_drift(&self, verified: &Value) {
        let wiped = self.wiped();
        for difference in verified["drift"].as_array().expect("a list").iter().filter_map(Value::as_str) {
            assert!(wiped.iter().any(|key| difference.starts_with(key.as_str())), "{difference}");
        }
    }

    /// Rows of photos that the platform has put anew and told nobody: what was ours there may be gone.
    fn wiped(&self) -> BTreeSet<String> {
        self.uploads.values().filter(|upload| upload.is_wiped).map(|upload| upload.key().to_string()).collect()
    }

    /// Compares every row of the table with what was written.
    ///
    /// # Panics
    ///
    /// Where a row is not as it should be.
    pub async fn check(&self, host: &dyn Host) {
        let rows = host.store().scan(None, 1_000_000).await.expect("the rows");
        let (mut images, mut tags) = (BTreeMap::new(), BTreeSet::new());
        let (mut persons, mut others) = (BTreeSet::new(), 0);
        for row in &rows {
            let (key, row) = (&row.key, Value::Object(row.attributes.clone()));
            match row["entityType"].as_str().unwrap_or_default() {
                "IMAGE" => drop(images.insert(key.pk.clone(), row)),
                "PERSON" => {
                    let person: PersonId = key.sk.parse().expect("a person");
                    let name = self.names.get(&person).cloned().unwrap_or_else(|| person.to_string());
                    assert_eq!(row["displayName"], name, "{key}");
                    persons.insert(person.to_string());
                }
                "USER" => self.check_user(key, row),
                "DEFAULT_LIMIT" => {
                    let limit = self.limits[&key.sk.parse().expect("an address")];
                    assert_eq!(row, json!({ "entityType": "DEFAULT_LIMIT", "limit": limit }), "{key}");
                }
                "UNKNOWN_PERSONS" => others += 1,
                tag => {
                    let person = tag.strip_prefix("TAGGING#").unwrap_or_else(|| panic!("{key} is nobody's: {row}"));
                    assert_eq!(key.sk, format!("PERSON#{person}"));
                    tags.insert((key.pk.clone(), person.to_owned()));
                }
            }
        }
        assert_eq!(others, 1, "counters");
        assert!(images.keys().eq(self.uploads.keys()), "photos: {:?}", images.keys());
        let mut shown = BTreeSet::new();
        for (image, row) in images {
            let upload = &self.uploads[&image];
            upload.check(&row);
            let persons = row["persons"].as_array().expect("a list").iter().filter_map(Value::as_str);
            shown.extend(persons.map(|person| (image.clone(), person.to_owned())));
        }
        assert_eq!(tags, shown, "tags and photos say the same");
        let seen: BTreeSet<String> = shown.iter().map(|(_, person)| person.clone()).collect();
        assert!(seen.is_subset(&persons), "{seen:?} without a row among {persons:?}");
        for (image, upload) in &self.deleted {
            let pictures = ["large", "medium"].map(|size| format!("processed/{image}_{size}.webp"));
            for key in pictures.iter().chain([&original(&upload.photo)]) {
                assert_eq!(host.objects().head(key).await.expect("an answer"), None, "{key}");
            }
        }
    }

    fn check_user(&self, key: &Key, mut row: Value) {
        let email: Email = key.pk.parse().expect("an address");
        let fields = row.as_object_mut().expect("a row");
        let (person, updated) = (fields.remove("personId"), fields.remove("updatedAt"));
        assert_eq!(row, self.users[&email], "{key}");
        let is_pictured = self.pictured.contains(&email);
        assert_eq!((person.is_some(), updated.is_some()), (is_pictured, is_pictured), "{key}");
    }

    /// How many photos there are, and how many there were.
    pub fn photos(&self) -> (usize, usize) {
        (self.uploads.len(), self.deleted.len())
    }

    /// How many persons somebody has named.
    pub fn named(&self) -> usize {
        self.names.len()
    }
}

impl Upload {
    fn check(&self, row: &Value) {
        let foreign = |row: &Value| -> Map<String, Value> {
            let fields = row.as_object().expect("a row").clone();
            fields.into_iter().filter(|(name, _)| !OURS.contains(&name.as_str())).collect()
        };
        assert_eq!(foreign(row), foreign(&self.row), "{}", self.key());
        assert!(row["lastModified"].as_str() >= self.row["lastModified"].as_str(), "{row}");
        let image = image_of(&self.photo);
        for size in ["large", "medium"] {
            assert_eq!(row["images"][size], format!("processed/{image}_{size}.webp"));
        }
        let persons = row["persons"].as_array().expect("a list").len();
        assert_eq!(persons, self.photo.identities.len(), "{row}");
    }
}
