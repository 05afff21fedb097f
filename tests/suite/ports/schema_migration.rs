//! Data folders of earlier schemas open unchanged, and their persons are identified.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use serde_json::json;
use sparks_domain::{Event, FaceId, Lane, PhotoProcessed, Position, Seq, Verdict};
use sparks_embedded::Embedded;
use sparks_engine::{Checkpoint, DeadLetters, Maintenance, Queue, Settlement, Store, TemplateScope, Templates};
use sparks_tests::{
    album::{Photo, photo},
    fault_injection::FaultPlan,
    platform_actions::send,
    samples::{image, person, processed, stored_face, time},
    snapshot::read_log,
    worker::{FOLDER_CONFIG, consolidator, drain, open, persons_in, rebuilder, upload},
};

use super::data_folders::DataFolders;

/// A database of schema 1, written by the first release for six photos.
const SCHEMA_1: &str = include_str!("../../fixtures/schema_1.sql");

/// A database of schema 2: six photos, a merge and two dead letters.
const SCHEMA_2: &str = include_str!("../../fixtures/schema_2.sql");

/// The identities of person1, person2 and person3 in it.
const IDENTITIES: [usize; 3] = [0, 1, 2];

fn folder_of_schema_1(folders: &DataFolders) -> PathBuf {
    folder_of(SCHEMA_1, 1, folders)
}

fn folder_of_schema_2(folders: &DataFolders) -> PathBuf {
    folder_of(SCHEMA_2, 2, folders)
}

fn folder_of(fixture: &str, schema: i64, folders: &DataFolders) -> PathBuf {
    let folder = folders.fresh();
    fs::create_dir_all(folder.join("objects")).unwrap();
    let file = connect(&folder);
    file.execute_batch(fixture).unwrap();
    assert_eq!(version(&file), schema);
    folder
}

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join("sparks.db")).unwrap()
}

fn version(file: &Connection) -> i64 {
    file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// Returns all values of a table as text.
fn rows(file: &Connection, table: &str) -> Vec<String> {
    let mut select = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = select.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|column| row.get_ref(column).map(|value| format!("{value:?}")));
        Ok(values.collect::<Result<Vec<_>, _>>()?.join(" "))
    };
    select.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

async fn templates_after(backend: &Embedded, seq: Seq) -> Templates {
    backend.store.templates(&Position::at(Lane::IDENTITY, seq), TemplateScope::Everything, 1000).await.unwrap()
}

async fn processed_photos(backend: &Embedded) -> Vec<PhotoProcessed> {
    let photo = |recorded: sparks_domain::RecordedEvent| match recorded.event {
        Event::PhotoProcessed(photo) => Some(photo),
        _ => None,
    };
    read_log(backend).await.into_iter().filter_map(photo).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_schema_1_keeps_all_rows() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_1(&folders);
    let tables = ["log", "items", "states", "messages", "dead_letters"];
    let before = tables.map(|table| rows(&connect(&folder), table));
    assert!(before[0].len() >= 5 && before[1].len() >= 10, "{before:?}");
    for _ in 0..2 {
        let backend = open(&folder);
        let file = connect(&folder);
        assert_eq!(version(&file), 3);
        assert_eq!(tables.map(|table| rows(&file, table)), before);
        let checkpoints = [
            backend.store.checkpoint(Checkpoint::Followed).await.unwrap(),
            backend.store.checkpoint(Checkpoint::Considered).await.unwrap(),
        ];
        assert_eq!(checkpoints, [Position::default(), Position::default()]);
        let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
        assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_of_schema_1_have_the_persons_of_the_log() {
    let folders = DataFolders::new();
    let backend = open(&folder_of_schema_1(&folders));
    let photos = processed_photos(&backend).await;
    let mut templates = Vec::new();
    for photo in &photos {
        for (n, decided) in (photo.first_face..).zip(&photo.faces) {
            let face = FaceId { image: photo.image_id.clone(), n };
            let kept = backend.store.signatures(std::slice::from_ref(&face)).await.unwrap();
            assert_eq!(kept.len(), 1, "{face:?}");
            assert_eq!((kept[0].person, kept[0].template), (decided.verdict.person(), decided.template), "{face:?}");
            templates.extend(decided.template.then_some(face));
        }
    }
    let found: Vec<_> = templates_after(&backend, Seq(0)).await.faces.into_iter().map(|kept| kept.face).collect();
    assert_eq!(found, templates);
    assert!(templates.len() >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_of_schema_1_are_identified_merged_and_unmerged() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_1(&folders);
    let backend = open(&folder);
    let known = backend.store.identity(Seq(0)).await.unwrap().counter;
    let photos: Vec<Photo> = (0..3).map(|n| photo(100 + n, &[IDENTITIES[n as usize]])).collect();
    let unknown = photo(110, &[40]);
    upload(&backend, &photos).await;
    upload(&backend, std::slice::from_ref(&unknown)).await;
    drain(&backend).await;
    for (photo, number) in photos.iter().zip(1..) {
        assert_eq!(persons_in(&backend, photo).await, [person(number)], "{:?}", photo.identities);
    }
    assert_eq!(persons_in(&backend, &unknown).await, [person(known + 1)]);

    let fingerprint = backend.store.fingerprint().await.unwrap();
    let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    let merged = consolidator.merge(person(1), person(2), true).await.unwrap();
    consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    consolidator.unmerge(merged.event).await.unwrap();
    consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!(backend.store.fingerprint().await.unwrap(), fingerprint);
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
}

/// A photo in two versions: the faces of the second have new numbers, and one of them is unidentified.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_of_a_later_version_keep_their_numbers() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_1(&folders);
    let last: i64 = connect(&folder).query_row("SELECT max(seq) FROM log", [], |row| row.get(0)).unwrap();
    let version = |name: &str, first_face: u16, persons: &[u32]| {
        let Event::PhotoProcessed(photo) = processed(&image(77), name, persons) else { unreachable!() };
        PhotoProcessed { first_face, ..photo }
    };
    let first = version("v1", 0, &[2, 1]);
    let mut second = version("v2", 2, &[3, 3]);
    second.faces[0].template = true;
    second.faces[1].verdict = Verdict::TooPoor;
    let file = connect(&folder);
    for (seq, event) in (last + 1..).zip([first, second].map(Event::PhotoProcessed)) {
        let values = params![seq, event.id().to_string(), time(seq).to_string(), event.event_type(), event.to_data()];
        file.execute("INSERT INTO log VALUES (?, ?, 'tests', ?, ?, ?, 0)", values).unwrap();
    }
    for n in 0..4 {
        let kept = stored_face(FaceId { image: image(77), n }, n as u8 + 1);
        let values = params![kept.face.image.as_str(), n, kept.model, kept.signature.to_bytes()];
        file.execute("INSERT INTO faces (image_id, n, model, signature) VALUES (?, ?, ?, ?)", values).unwrap();
    }
    drop(file);

    let backend = open(&folder);
    let faces: Vec<_> = (0..4).map(|n| FaceId { image: image(77), n }).collect();
    let kept = backend.store.signatures(&faces).await.unwrap();
    let decided: Vec<_> = kept.iter().map(|face| (face.person.map(|p| p.number()), face.template)).collect();
    assert_eq!(decided, [(Some(2), false), (Some(1), false), (Some(3), true), (None, false)]);
    let unknown = backend.store.unidentified(None, 100).await.unwrap();
    let last = Seq(last.cast_unsigned());
    let unknown: Vec<_> = unknown.into_iter().filter(|decided| decided.kept.face.image == image(77)).collect();
    assert_eq!(unknown.iter().map(|d| (d.kept.face.n, d.seq)).collect::<Vec<_>>(), [(3, Seq(last.0 + 2))]);
    let templates = templates_after(&backend, last).await;
    assert_eq!(templates.faces.iter().map(|kept| kept.face.n).collect::<Vec<_>>(), [2]);
    assert_eq!(templates.read, Position::at(Lane::IDENTITY, Seq(last.0 + 2)));
    let pairs = backend.store.co_occurrences(None).await.unwrap();
    assert!(pairs.contains(&(person(1), person(2))), "{pairs:?}");
}

#[test]
fn concurrent_opens_migrate_schema_1_once() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_1(&folders);
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| drop(open(&folder)))).collect();
        assert!(opening.into_iter().all(|opened| opened.join().is_ok()));
    });
    assert_eq!(version(&connect(&folder)), 3);
}

#[test]
fn a_folder_of_a_later_schema_is_refused_and_not_changed() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_1(&folders);
    connect(&folder).pragma_update(None, "user_version", 4).unwrap();
    let before = rows(&connect(&folder), "faces");
    let refused = Embedded::open(&folder, FOLDER_CONFIG).err().expect("opening fails").to_string();
    assert!(refused.contains("schema 4") && refused.contains("supports schema 3"), "{refused}");
    assert_eq!((version(&connect(&folder)), rows(&connect(&folder), "faces")), (4, before));
}

/// Describes the columns, indexes and triggers of every table.
fn describe_schema(file: &Connection) -> Vec<String> {
    let sql = "SELECT t.name || ': ' || c.name || ' ' || c.type || ' ' || coalesce(c.dflt_value, '') || ' ' || c.\"notnull\" || ' ' || c.pk
               FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
               UNION ALL SELECT type || ' ' || name || ' ' || sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
               ORDER BY 1";
    let mut select = file.prepare(sql).unwrap();
    select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_schema_is_migrated_to_the_current_one() {
    let folders = DataFolders::new();
    let new = folders.fresh();
    drop(open(&new));
    let expected = describe_schema(&connect(&new));
    assert!(expected.len() > 40, "{expected:#?}");
    for folder in [folder_of_schema_1(&folders), folder_of_schema_2(&folders)] {
        drop(open(&folder));
        assert_eq!(version(&connect(&folder)), 3);
        assert_eq!(describe_schema(&connect(&folder)), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_schema_2_keeps_all_rows() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_2(&folders);
    let tables = ["log", "items", "states", "heads"];
    let before = tables.map(|table| rows(&connect(&folder), table));
    let faces = rows(&connect(&folder), "faces");
    let templates: i64 = connect(&folder).query_row("SELECT sum(template) FROM faces", [], |row| row.get(0)).unwrap();
    for _ in 0..2 {
        let backend = open(&folder);
        assert_eq!(version(&connect(&folder)), 3);
        assert_eq!(tables.map(|table| rows(&connect(&folder), table)), before);
        let kept: Vec<_> = faces.iter().map(|row| format!("{row} Null")).collect();
        assert_eq!(rows(&connect(&folder), "faces"), kept, "faces after the migration");
        let found = templates_after(&backend, Seq(0)).await.faces;
        assert_eq!(found.len(), usize::try_from(templates).unwrap());
        let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
        assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_and_dead_letters_of_schema_2_are_processed() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_2(&folders);
    let backend = open(&folder);
    let letters = backend.queue.list(None, 10).await.unwrap();
    let found: Vec<_> =
        letters.iter().map(|l| (l.body.as_str(), l.cause.as_str(), l.reason.as_str(), l.receives)).collect();
    let reason = "it says nothing we know";
    assert_eq!(found, [("{\"n\":0}", "fault", reason, 1), ("{\"n\":1}", "fault", reason, 1)]);
    assert!(
        letters.iter().all(|letter| letter.died > letter.sent),
        "schema 2 has no send time; it must be before the dead-letter time"
    );
    assert!(backend.queue.replay(&letters[0].id).await.unwrap().is_some());
    let mut received = backend.queue.receive(10).await.unwrap();
    assert_eq!(
        received.iter().map(|d| (d.body.as_str(), d.receives)).collect::<Vec<_>>(),
        [("{\"n\":2}", 1), ("{\"n\":0}", 1)]
    );
    for delivery in received.drain(..) {
        backend.queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
    }
    assert_eq!(backend.queue.depth().await.unwrap().dead, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_of_schema_2_are_identified_after_deletions() {
    let folders = DataFolders::new();
    let folder = folder_of_schema_2(&folders);
    let backend = open(&folder);
    let last = templates_after(&backend, Seq(0)).await.read.in_lane(Lane::IDENTITY);
    // Identities 0, 1 and 2 are person1 to person3; identity 3 is person4, merged into person1.
    let photos: Vec<Photo> = [(100, 1), (101, 3)].map(|(number, identity)| photo(number, &[identity])).to_vec();
    upload(&backend, &photos).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &photos[0]).await, [person(2)]);
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1)]);
    let select = "SELECT substr(SK, 13) FROM items WHERE PK = ? AND SK LIKE 'UPLOADED_BY#%'";
    for image in [1, 3].map(image) {
        let uploader: String = connect(&folder).query_row(select, [image.as_str()], |row| row.get(0)).unwrap();
        send(&backend, json!({ "action": "delete", "imageId": image, "uploadedBy": uploader })).await;
    }
    drain(&backend).await;
    let log = read_log(&backend).await;
    assert_eq!(sparks_tests::snapshot::count(&log, "PhotoDeleted"), 2);
    // Photo 1 held the first templates of person2 and person3; other photos replace them.
    let next = [photo(110, &[1]), photo(111, &[2])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(2)]);
    assert_eq!(persons_in(&backend, &next[1]).await, [person(3)]);
    assert!(!templates_after(&backend, last).await.faces.is_empty());
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
}
