//! A data folder with a processed album, for tests of merges, reviews and rebuilds.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use serde_json::Value;
use sparks_domain::{EventId, Item, Key, PersonId};
use sparks_embedded::Embedded;
use sparks_engine::{Consolidator, Filter, Fingerprint, Maintenance, MergeSummary, Query, Store};
use sparks_tests::{
    album::Photo,
    fault_injection::FaultPlan,
    samples::person,
    worker::{consolidator, drain, open, rebuilder, upload},
};

use super::data_folders::DataFolders;

/// A data folder in which all photos of an album were processed, and a consolidator over it.
pub struct ProcessedAlbum {
    pub folder: PathBuf,
    pub backend: Embedded,
    pub photos: Vec<Photo>,
    pub consolidator: Consolidator,
}

/// All rows of the table and all objects of the bucket.
#[derive(PartialEq)]
pub struct FolderContents {
    fingerprint: Fingerprint,
    rows: Vec<Item>,
    objects: BTreeMap<PathBuf, Vec<u8>>,
}

impl ProcessedAlbum {
    pub async fn create(folders: &DataFolders, photos: Vec<Photo>) -> Self {
        let folder = folders.fresh();
        let backend = open(&folder);
        upload(&backend, &photos).await;
        drain(&backend).await;
        let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
        Self { folder, backend, photos, consolidator }
    }

    /// Asserts that the table has no drift, and returns the contents of the folder.
    pub async fn contents(&self) -> FolderContents {
        self.assert_no_drift().await;
        FolderContents {
            fingerprint: self.backend.store.fingerprint().await.unwrap(),
            rows: self.backend.store.scan(None, usize::MAX).await.unwrap(),
            objects: read_objects(&self.folder.join("objects")),
        }
    }

    pub async fn assert_no_drift(&self) {
        let drift = rebuilder(&self.backend).run(false, |_| ()).await.unwrap();
        assert_eq!((drift.total, drift.renamed.len()), (0, 0), "{:#?} {:?}", drift.differences, drift.renamed);
    }

    /// Merges two persons and updates their photos.
    pub async fn merge(&self, a: u32, b: u32) -> MergeSummary {
        let merged = self.consolidator.merge(person(a), person(b), false).await.unwrap();
        self.consolidator.apply_merges(|_| ()).await.unwrap();
        merged
    }

    /// Takes a merge back and updates the photos.
    pub async fn unmerge(&self, merge: EventId) -> PersonId {
        let person = self.consolidator.unmerge(merge).await.unwrap();
        self.consolidator.apply_merges(|_| ()).await.unwrap();
        person
    }

    /// Returns the number of photos tagged with a person.
    pub async fn tag_count(&self, number: u32) -> usize {
        let filter = Filter::EntityType(format!("TAGGING#person{number}"));
        let query = Query { filter, after: None, limit: 10_000, backwards: false };
        self.backend.store.query(&query).await.unwrap().items.len()
    }

    pub async fn row(&self, key: &Key) -> Option<Value> {
        self.backend.store.get(key).await.unwrap().map(|item| Value::Object(item.attributes))
    }

    /// Writes into the table with SQL, as another program would.
    pub fn execute_sql(&self, sql: &str) -> usize {
        Connection::open(self.folder.join("sparks.db")).unwrap().execute(sql, []).unwrap()
    }

    pub async fn display_name(&self, number: u32) -> Value {
        self.row(&Key::person(person(number))).await.unwrap()["displayName"].clone()
    }
}

fn read_objects(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(read_objects(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Asserts that two folders hold the same rows and objects, byte for byte.
pub fn assert_same_contents(now: &FolderContents, before: &FolderContents) {
    assert_eq!(now.fingerprint, before.fingerprint);
    assert!(now.rows == before.rows, "the rows differ");
    let keys = |contents: &FolderContents| contents.objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(now), keys(before));
    assert!(now.objects == before.objects, "an object differs");
}
