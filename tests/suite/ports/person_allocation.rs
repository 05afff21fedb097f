//! Allocation of new persons under concurrency: one person per identity, and no number twice.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use sparks_domain::{Key, Seq};
use sparks_embedded::Embedded;
use sparks_engine::{ArrivalOrder, Clock, Objects, Queue, Settlement, Store, SystemClock};
use sparks_tests::{
    album::{Photo, album},
    samples::person,
    snapshot::{count, expected_groups, photo_groups, read_log},
    worker::{drain, open, persons_in, photos_in, pipeline, rebuilder, upload},
};
use tokio::{sync::Barrier, task::JoinSet};

use super::data_folders::DataFolders;

/// Processes all photos at the same time, each with an empty gallery. Returns the number of commit conflicts.
async fn process_concurrently(folder: &Path, backends: usize, photos: &[Photo]) -> u64 {
    let backends: Vec<Arc<Embedded>> = (0..backends).map(|_| Arc::new(open(folder))).collect();
    upload(&backends[0], photos).await;
    let mut tasks = JoinSet::new();
    let start = Arc::new(Barrier::new(photos.len()));
    for (n, delivery) in backends[0].queue.receive(photos.len()).await.unwrap().into_iter().enumerate() {
        let (backend, start) = (Arc::clone(&backends[n % backends.len()]), Arc::clone(&start));
        let owner = Arc::clone(&backends[0]);
        tasks.spawn(async move {
            let store = Arc::clone(&backend.store) as Arc<dyn Store>;
            let objects = Arc::clone(&backend.objects) as Arc<dyn Objects>;
            let pipeline = pipeline(store, objects).await.unwrap();
            start.wait().await;
            for photo in photos_in(&delivery.body).unwrap() {
                pipeline.process(photo, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap();
            }
            owner.queue.settle(delivery, Settlement::Acknowledge).await.unwrap();
            pipeline.conflicts()
        });
    }
    assert_eq!(tasks.len(), photos.len(), "number of received messages");
    tasks.join_all().await.into_iter().sum()
}

async fn check_concurrent(backends: usize, identities: &[&[usize]], persons: u32) {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let photos = album(identities);
    let conflicts = process_concurrently(&folder, backends, &photos).await;
    let backend = open(&folder);
    let log = read_log(&backend).await;
    let (found, expected) = (photo_groups(&log), expected_groups(&photos));
    assert_eq!(found, expected, "photos grouped by person");
    let tail = backend.store.identity(Seq(0)).await.unwrap();
    assert_eq!(tail.counter, persons, "the counter");
    for number in 1..=persons {
        let row = backend.store.get(&Key::person(person(number))).await.unwrap();
        assert!(row.is_some(), "person{number} has no row");
        let crop = backend.objects.head(&format!("persons/person{number}.jpg")).await.unwrap();
        assert!(crop.is_some(), "person{number} has no crop");
    }
    assert_eq!(
        backend.store.get(&Key::person(person(persons + 1))).await.unwrap(),
        None,
        "an additional person was allocated"
    );
    assert_eq!(count(&log, "PhotoProcessed"), photos.len());
    // All galleries start empty, so every commit after the first conflicts with an earlier one.
    assert!(conflicts > 0, "{} concurrent photos caused no conflict", photos.len());
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    println!("{} photos on {backends} backends: {conflicts} conflicts", photos.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_identity_in_32_concurrent_photos_is_one_person() {
    check_concurrent(1, &[&[0][..]; 32], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_identity_over_four_connections_is_one_person() {
    check_concurrent(4, &[&[0][..]; 32], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_new_identities_in_one_photo_are_distinguished() {
    let identities: Vec<&[usize]> = [&[0, 1][..], &[1, 2], &[2, 3], &[3, 0], &[0, 2], &[1, 3]].repeat(4);
    check_concurrent(2, &identities, 4).await;
}

/// Inserts a row with a formatting that the worker never writes.
fn insert_row(folder: &Path, key: &Key, text: &str) {
    let file = Connection::open(folder.join("sparks.db")).unwrap();
    let insert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)";
    assert_eq!(file.execute(insert, [&key.pk, &key.sk, text]).unwrap(), 1);
}

fn read_row_text(folder: &Path, key: &Key) -> String {
    let file = Connection::open(folder.join("sparks.db")).unwrap();
    let select = "SELECT item FROM items WHERE PK = ? AND SK = ?";
    file.query_row(select, [&key.pk, &key.sk], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_number_used_by_a_foreign_row_is_skipped() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    let photos = album(&[&[0], &[1], &[0, 1]]);
    let foreign = r#"{ "zeal" : 1.10,  "displayName":"foreign", "entityType": "PERSON" }"#;
    insert_row(&folder, &Key::person(person(1)), foreign);
    upload(&backend, &photos).await;
    drain(&backend).await;

    let named: Vec<Vec<_>> = [persons_in(&backend, &photos[0]).await, persons_in(&backend, &photos[1]).await].to_vec();
    assert_eq!(named, [[person(2)], [person(3)]], "numbers of the new persons");
    assert_eq!(persons_in(&backend, &photos[2]).await, [person(2), person(3)]);
    assert_eq!(read_row_text(&folder, &Key::person(person(1))), foreign, "the foreign row");
    assert_eq!(backend.store.identity(Seq(0)).await.unwrap().counter, 3);
    let drift = rebuilder(&backend).run(true, |_| ()).await.unwrap();
    assert_eq!((drift.total, drift.renamed.len()), (0, 0), "{:#?}", drift.differences);
    assert_eq!(read_row_text(&folder, &Key::person(person(1))), foreign, "the foreign row after a rebuild");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_counter_after_a_skipped_number_is_the_allocated_number() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    insert_row(&folder, &Key::person(person(1)), "{}");
    upload(&backend, &album(&[&[0]])).await;
    drain(&backend).await;
    assert_eq!(backend.store.identity(Seq(0)).await.unwrap().counter, 2);
    assert_eq!(read_row_text(&folder, &Key::person(person(1))), "{}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_raised_by_another_program_leaves_a_gap() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    let photos = album(&[&[0], &[0, 1]]);
    upload(&backend, &photos[..1]).await;
    drain(&backend).await;
    let file = Connection::open(folder.join("sparks.db")).unwrap();
    let add = "UPDATE items SET item = json_set(item, '$.limit', 41) WHERE PK = 'UNKNOWN_PERSONS'";
    assert_eq!(file.execute(add, []).unwrap(), 1);
    upload(&backend, &photos[1..]).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &photos[1]).await, [person(1), person(42)]);
    assert_eq!(backend.store.identity(Seq(0)).await.unwrap().counter, 42);
}
