//! The platform's table in memory, to which mutations are applied.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sparks_domain::{Attributes, ImageId, Item, Key, Mutation, Presence};

use crate::given_when_then::ada;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub rows: BTreeMap<Key, Attributes>,
}

/// Returns the fields of a JSON object.
pub fn fields(object: Value) -> Attributes {
    match object {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

impl Table {
    /// Returns the rows that the platform creates when these photos are uploaded.
    pub fn of_platform<'a>(images: impl IntoIterator<Item = &'a ImageId>) -> Self {
        let rows = images.into_iter().map(|image| (Key::image(image, &ada()), uploaded(image)));
        Self { rows: rows.collect() }
    }

    /// Applies mutations as a commit does: each under its condition.
    #[track_caller]
    pub fn commit(&mut self, mutations: &[Mutation]) {
        for mutation in mutations {
            let exists = self.rows.contains_key(mutation.key());
            assert!(exists || !mutation.requires_row(), "{} does not exist", mutation.key());
            if let Mutation::Set { presence, .. } = mutation {
                let holds = match presence {
                    Presence::Any => true,
                    Presence::Required => exists,
                    Presence::Absent => !exists,
                };
                assert!(holds, "{}: {presence:?} does not hold", mutation.key());
            }
            self.apply(mutation);
        }
    }

    /// Applies mutations as a rebuild does: without conditions.
    pub fn repair(&mut self, mutations: &[Mutation]) {
        for mutation in mutations {
            self.apply(mutation);
        }
    }

    fn apply(&mut self, mutation: &Mutation) {
        let key = mutation.key();
        if let Some(row) = mutation.apply(self.rows.remove(key)) {
            self.rows.insert(key.clone(), row);
        }
    }

    /// Returns every byte, one row per line, by key.
    pub fn text(&self) -> String {
        let row = |(key, row): (&Key, &Attributes)| {
            Item { key: key.clone(), attributes: row.clone() }.into_json().to_string() + "\n"
        };
        self.rows.iter().map(row).collect()
    }

    /// Returns the sort keys of the partition.
    pub fn sort_keys(&self, pk: &str) -> Vec<&str> {
        self.rows.keys().filter(|key| key.pk == pk).map(|key| key.sk.as_str()).collect()
    }
}

/// Returns the IMAGE row of a photo that was not processed yet.
pub fn uploaded(image: &ImageId) -> Attributes {
    fields(json!({
        "entityType": "IMAGE",
        "imageId": image,
        "assetType": "IMAGE",
        "uploadedBy": ada(),
        "uploaded_datetime": "2025-08-01T09:24:00.123Z",
        "lastModified": "2025-08-01T09:24:00.123Z",
        "s3Key": format!("originals/{image}.jpg"),
        "thumbnailFileName": format!("{image}_thumb.jpg"),
        "tags": ["sea", "1"],
        "description": "the beach \u{1f3d6} at noon",
    }))
}
