//! Compares the table, row by row, with what the simulated platform and the workers must have written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sparks_domain::{Email, Key, PersonId};

use super::{PlatformHost, PlatformSimulator, Upload};
use crate::{platform_actions::original_key, worker::image_of};

/// The attributes of an IMAGE row that the worker writes.
const WORKER_ATTRIBUTES: [&str; 3] = ["images", "persons", "lastModified"];

impl PlatformSimulator {
    /// Asserts that `sparks verify --repair` reported only rows that the platform had overwritten.
    ///
    /// # Panics
    ///
    /// Panics if any other row drifted.
    pub fn assert_drift_is_expected(&self, verified: &Value) {
        let overwritten = self.overwritten_rows();
        for difference in verified["drift"].as_array().expect("drift is a list").iter().filter_map(Value::as_str) {
            assert!(overwritten.iter().any(|key| difference.starts_with(key.as_str())), "{difference}");
        }
    }

    /// Returns the rows that the platform replaced without a message, so that the worker's attributes may be missing there.
    fn overwritten_rows(&self) -> BTreeSet<String> {
        self.uploads.values().filter(|upload| upload.is_overwritten).map(|upload| upload.key().to_string()).collect()
    }

    /// Compares every row of the table with the expected one.
    ///
    /// # Panics
    ///
    /// Panics if a row is missing, unexpected or different.
    pub async fn assert_table_matches(&self, host: &dyn PlatformHost) {
        let rows = host.store().scan(None, 1_000_000).await.expect("scan succeeds");
        let (mut images, mut tags) = (BTreeMap::new(), BTreeSet::new());
        let (mut persons, mut counters) = (BTreeSet::new(), 0);
        for row in &rows {
            let (key, row) = (&row.key, Value::Object(row.attributes.clone()));
            match row["entityType"].as_str().unwrap_or_default() {
                "IMAGE" => drop(images.insert(key.pk.clone(), row)),
                "PERSON" => {
                    let person: PersonId = key.sk.parse().expect("person ID");
                    let name = self.names.get(&person).cloned().unwrap_or_else(|| person.to_string());
                    assert_eq!(row["displayName"], name, "{key}");
                    persons.insert(person.to_string());
                }
                "USER" => self.assert_user_row(key, row),
                "DEFAULT_LIMIT" => {
                    let limit = self.limits[&key.sk.parse().expect("valid email address")];
                    assert_eq!(row, json!({ "entityType": "DEFAULT_LIMIT", "limit": limit }), "{key}");
                }
                "UNKNOWN_PERSONS" => counters += 1,
                tag => {
                    let person = tag.strip_prefix("TAGGING#").unwrap_or_else(|| panic!("unexpected row {key}: {row}"));
                    assert_eq!(key.sk, format!("PERSON#{person}"));
                    tags.insert((key.pk.clone(), person.to_owned()));
                }
            }
        }
        assert_eq!(counters, 1, "number of counter rows");
        assert!(images.keys().eq(self.uploads.keys()), "IMAGE rows: {:?}", images.keys());
        let mut named = BTreeSet::new();
        for (image, row) in images {
            let upload = &self.uploads[&image];
            upload.assert_row(&row);
            let persons = row["persons"].as_array().expect("persons is a list").iter().filter_map(Value::as_str);
            named.extend(persons.map(|person| (image.clone(), person.to_owned())));
        }
        assert_eq!(tags, named, "TAGGING rows and the persons of IMAGE rows");
        let tagged: BTreeSet<String> = named.iter().map(|(_, person)| person.clone()).collect();
        assert!(tagged.is_subset(&persons), "tagged {tagged:?}, but PERSON rows are {persons:?}");
        for (image, upload) in &self.deleted {
            let variants = ["large", "medium"].map(|size| format!("processed/{image}_{size}.webp"));
            for key in variants.iter().chain([&original_key(&upload.photo)]) {
                assert_eq!(host.objects().head(key).await.expect("head succeeds"), None, "{key}");
            }
        }
    }

    fn assert_user_row(&self, key: &Key, mut row: Value) {
        let email: Email = key.pk.parse().expect("valid email address");
        let fields = row.as_object_mut().expect("row is an object");
        let (person, updated) = (fields.remove("personId"), fields.remove("updatedAt"));
        assert_eq!(row, self.users[&email], "{key}");
        let has_profile = self.profiled_users.contains(&email);
        assert_eq!((person.is_some(), updated.is_some()), (has_profile, has_profile), "{key}");
    }

    /// Returns the number of existing and of deleted photos.
    pub fn photo_counts(&self) -> (usize, usize) {
        (self.uploads.len(), self.deleted.len())
    }

    /// Returns the number of renamed persons.
    pub fn renamed_persons(&self) -> usize {
        self.names.len()
    }
}

impl Upload {
    fn assert_row(&self, row: &Value) {
        let foreign = |row: &Value| -> Map<String, Value> {
            let fields = row.as_object().expect("row is an object").clone();
            fields.into_iter().filter(|(name, _)| !WORKER_ATTRIBUTES.contains(&name.as_str())).collect()
        };
        assert_eq!(foreign(row), foreign(&self.row), "{}", self.key());
        assert!(row["lastModified"].as_str() >= self.row["lastModified"].as_str(), "{row}");
        let image = image_of(&self.photo);
        for size in ["large", "medium"] {
            assert_eq!(row["images"][size], format!("processed/{image}_{size}.webp"));
        }
        let persons = row["persons"].as_array().expect("persons is a list").len();
        assert_eq!(persons, self.photo.identities.len(), "{row}");
    }
}
