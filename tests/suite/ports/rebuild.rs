//! A rebuild restores every row and attribute of the worker from the event log and changes nothing else.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use sparks_domain::{Event, Key, Seq};
use sparks_embedded::Embedded;
use sparks_engine::{Drift, Maintenance, Store};
use sparks_tests::{
    album::{Photo, album},
    samples::{person, uploader},
    snapshot::{count, read_log},
    worker::{drain, image_of, open, persons_in, rebuilder, upload},
};

use super::data_folders::DataFolders;

/// A data folder with a processed album, and direct access to its database.
struct Table {
    folder: PathBuf,
    backend: Embedded,
    file: Connection,
    photos: Vec<Photo>,
}

type Rows = BTreeMap<(String, String), String>;

impl Table {
    /// Processes an album and adds attributes of the platform to its rows.
    async fn create(folders: &DataFolders, identities: &[&[usize]]) -> Self {
        let folder = folders.fresh();
        let (backend, photos) = (open(&folder), album(identities));
        upload(&backend, &photos).await;
        drain(&backend).await;
        let table = Self { file: connect(&folder), folder, backend, photos };
        for photo in &table.photos {
            table.edit(&table.image_row(photo), |row| {
                row.insert("tags".into(), json!(["sea", "1.10"]));
                row.insert("description".into(), "by the \"sea\"".into());
            });
        }
        table
    }

    /// Inserts rows of other programs, with a formatting that the worker never writes.
    fn add_foreign_rows(&self) -> Rows {
        let rows = [
            ("uploader@example.org", "uploader@example.org", r#"{"entityType":"USER",  "personId":"person1" }"#),
            ("LIMIT#uploader@example.org", "uploader@example.org", r#"{ "limit" : 1.50 }"#),
            ("PERSON#person900", "person900", r#"{"entityType":"PERSON", "displayName":"foreign"}"#),
            (image_of(&self.photos[0]).as_str(), "NOTE#1", r#"{ "entityType":"NOTE","b":1,"a":2}"#),
            ("PERSON#foreign", "foreign", "{}"),
        ]
        .map(|(pk, sk, text)| ((pk.to_owned(), sk.to_owned()), text.to_owned()));
        for ((pk, sk), text) in &rows {
            let insert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)";
            self.file.execute(insert, [pk, sk, text]).unwrap();
        }
        rows.into_iter().collect()
    }

    fn image_row(&self, photo: &Photo) -> Key {
        Key::image(&image_of(photo), &uploader())
    }

    fn rows(&self) -> Rows {
        let mut select = self.file.prepare("SELECT PK, SK, item FROM items").unwrap();
        let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn row(&self, key: &Key) -> Option<Map<String, Value>> {
        let text = self.rows().remove(&(key.pk.clone(), key.sk.clone()))?;
        serde_json::from_str(&text).unwrap()
    }

    fn edit(&self, key: &Key, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut row = self.row(key).unwrap();
        change(&mut row);
        let text = serde_json::to_string(&row).unwrap();
        let update = "UPDATE items SET item = ? WHERE PK = ? AND SK = ?";
        assert_eq!(self.file.execute(update, [&text, &key.pk, &key.sk]).unwrap(), 1);
    }

    fn delete(&self, filter: &str) -> usize {
        self.file.execute(&format!("DELETE FROM items WHERE {filter}"), []).unwrap()
    }

    async fn compare(&self) -> Drift {
        rebuilder(&self.backend).run(false, |_| ()).await.unwrap()
    }

    async fn rebuild(&self) -> Drift {
        rebuilder(&self.backend).run(true, |_| ()).await.unwrap()
    }

    async fn process_more(&mut self, identities: &[&[usize]]) -> Vec<Photo> {
        let new: Vec<Photo> =
            album(identities).into_iter().map(|photo| Photo { number: photo.number + 50, ..photo }).collect();
        upload(&self.backend, &new).await;
        drain(&self.backend).await;
        new
    }
}

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join("sparks.db")).unwrap()
}

const IDENTITIES: [&[usize]; 4] = [&[0], &[1, 2], &[], &[0, 2]];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn own_rows_and_attributes_are_restored_byte_for_byte() {
    let folders = DataFolders::new();
    let table = Table::create(&folders, &IDENTITIES).await;
    let foreign = table.add_foreign_rows();
    let before = table.rows();
    assert_eq!(table.delete("PK IN ('PERSON#person1', 'PERSON#person2', 'PERSON#person3')"), 3);
    assert_eq!(table.delete("SK LIKE 'PERSON#%'"), 5, "a tagging for every face");
    assert_eq!(table.delete("PK = 'UNKNOWN_PERSONS'"), 1);
    for photo in &table.photos {
        table.edit(&table.image_row(photo), |row| {
            for own in ["images", "persons", "lastModified"] {
                assert!(row.remove(own).is_some(), "{own} is missing before the test removes it");
            }
        });
    }

    let damaged = table.backend.store.fingerprint().await.unwrap();
    let found = table.compare().await;
    assert_eq!(found.total, 3 + 5 + 1 + 4 * 3, "{:#?}", found.differences);
    assert_eq!(table.backend.store.fingerprint().await.unwrap(), damaged, "a comparison changes nothing");

    assert_eq!(table.rebuild().await.total, found.total);
    assert_eq!(table.rows(), before, "the rows after the rebuild");
    assert!(foreign.iter().all(|(key, text)| before.get(key) == Some(text)));
    assert_eq!(table.compare().await.total, 0);
    assert_eq!(count(&read_log(&table.backend).await, "PersonRenamed"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_without_drift_is_not_changed() {
    let folders = DataFolders::new();
    let table = Table::create(&folders, &IDENTITIES).await;
    table.add_foreign_rows();
    let (rows, head) = (table.rows(), table.backend.store.heads().await.unwrap());
    let drift = table.rebuild().await;
    assert_eq!((drift.total, drift.deleted_photos, drift.renamed.len()), (0, 0, 0), "{drift:#?}");
    assert_eq!(drift.events, head.events());
    assert_eq!(table.rows(), rows);
    assert_eq!(table.backend.store.heads().await.unwrap(), head, "nothing was recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn wrong_values_are_reported_and_repaired() {
    let folders = DataFolders::new();
    let table = Table::create(&folders, &IDENTITIES).await;
    let before = table.rows();
    table.edit(&table.image_row(&table.photos[1]), |row| drop(row.insert("persons".into(), json!(["person9"]))));
    table.edit(&Key::tagging(&image_of(&table.photos[0]), person(1)), |row| drop(row.remove("s3Key")));
    table.edit(&Key::person(person(2)), |row| drop(row.insert("s3Key".into(), json!(1))));
    table.edit(&Key::counter(), |row| drop(row.insert("limit".into(), json!(1))));
    let drift = table.compare().await;
    let reported: Vec<String> = drift.differences.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 4, "{reported:#?}");
    for (attribute, photo) in [("persons", 1), ("s3Key", 0)] {
        let image = image_of(&table.photos[photo]);
        let is_reported = reported.iter().any(|line| line.contains(attribute) && line.contains(image.as_str()));
        assert!(is_reported, "{attribute} of {image} is not reported: {reported:#?}");
    }
    table.rebuild().await;
    assert_eq!(table.rows(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_foreign_display_name_is_adopted() {
    let folders = DataFolders::new();
    let mut table = Table::create(&folders, &IDENTITIES).await;
    let key = Key::person(person(2));
    let name = |name: &str| {
        let name = name.to_owned();
        move |row: &mut Map<String, Value>| drop(row.insert("displayName".into(), name.into()))
    };
    table.edit(&key, name("Ada \"the\" Löwe"));
    let found = table.compare().await;
    assert_eq!(found.renamed, [(person(2), "Ada \"the\" Löwe".to_owned())]);
    assert_eq!(
        (found.total, count(&read_log(&table.backend).await, "PersonRenamed")),
        (0, 0),
        "a comparison records no event"
    );

    assert_eq!(table.rebuild().await.total, 0, "a foreign display name counts as drift");
    let log = read_log(&table.backend).await;
    let Some(Event::PersonRenamed(renamed)) = log.last().map(|recorded| &recorded.event) else {
        panic!("the last event is {:?}", log.last());
    };
    assert_eq!(
        (renamed.person, renamed.from.as_str(), renamed.to.as_str()),
        (person(2), "person2", "Ada \"the\" Löwe")
    );
    let named = table.rows();
    assert_eq!(table.delete("PK = 'PERSON#person2'"), 1);
    table.rebuild().await;
    assert_eq!(table.rows(), named, "the row after its deletion and a rebuild");
    assert_eq!(count(&read_log(&table.backend).await, "PersonRenamed"), 1, "events of one new name");

    // The initial name is a name like any other.
    table.edit(&key, name("person2"));
    table.rebuild().await;
    table.delete("PK = 'PERSON#person2'");
    table.rebuild().await;
    assert_eq!(table.row(&key).unwrap()["displayName"], "person2");
    assert_eq!(count(&read_log(&table.backend).await, "PersonRenamed"), 2);

    // Allocation after renames uses the current identity head.
    let new = table.process_more(&[&[7], &[1, 7]]).await;
    assert_eq!(persons_in(&table.backend, &new[1]).await, [person(2), person(4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_never_lowers_the_counter() {
    let folders = DataFolders::new();
    let mut table = Table::create(&folders, &IDENTITIES).await;
    table.edit(&Key::counter(), |row| drop(row.insert("limit".into(), json!(1000))));
    let rows = table.rows();
    assert_eq!(table.rebuild().await.total, 0, "a larger counter counts as drift");
    assert_eq!(table.rows(), rows);
    let new = table.process_more(&[&[7]]).await;
    assert_eq!(persons_in(&table.backend, &new[0]).await, [person(1001)]);

    // Without the row, the counter is the highest number in the log.
    table.delete("PK = 'UNKNOWN_PERSONS'");
    table.rebuild().await;
    assert_eq!(table.backend.store.identity(Seq(0)).await.unwrap().counter, 1001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_that_the_platform_deleted_stays_deleted() {
    let folders = DataFolders::new();
    let table = Table::create(&folders, &IDENTITIES).await;
    let image = image_of(&table.photos[3]);
    assert_eq!(table.delete(&format!("PK = '{image}'")), 3, "the photo and two taggings");
    let rows = table.rows();
    let drift = table.rebuild().await;
    assert_eq!((drift.total, drift.deleted_photos), (0, 1), "{drift:#?}");
    assert_eq!(table.rows(), rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_beside_workers_ends_without_drift() {
    let folders = DataFolders::new();
    let table = Table::create(&folders, &IDENTITIES).await;
    table.delete("PK LIKE 'PERSON#%'");
    let more: Vec<&[usize]> = vec![&[0, 5], &[6], &[5], &[1], &[6, 2], &[8]];
    let more: Vec<Photo> = album(&more).into_iter().map(|photo| Photo { number: photo.number + 50, ..photo }).collect();
    let worker = open(&table.folder);
    upload(&worker, &more).await;
    let rebuilding = async {
        for _ in 0..10 {
            table.rebuild().await;
        }
    };
    tokio::join!(drain(&worker), rebuilding);
    table.rebuild().await;
    assert_eq!(table.compare().await.total, 0);
    assert_eq!(table.backend.store.identity(Seq(0)).await.unwrap().counter, 6);
    assert_eq!(count(&read_log(&table.backend).await, "PhotoProcessed"), 10);
}
