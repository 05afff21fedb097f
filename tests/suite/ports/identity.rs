//! Never two persons for one stranger, and never a number twice.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use sparks_domain::{Key, Seq};
use sparks_embedded::Embedded;
use sparks_engine::{Objects, Queue, Settlement, Store, Turnstile};
use sparks_tests::{
    album::{Photo, album},
    samples::person,
    snapshot::{count, groups, read_log, truth},
    worker::{drain, open, persons_in, photos_in, pipeline, rebuilder, upload},
};
use tokio::{sync::Barrier, task::JoinSet};

use super::embedded::Folders;

/// Everybody works on one photo, at the same time, each with an index that knows nobody. Returns the conflicts met.
async fn stampede(folder: &Path, backends: usize, photos: &[Photo]) -> u64 {
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
                pipeline.process(photo, &Turnstile::default().ticket()).await.unwrap();
            }
            owner.queue.settle(delivery, Settlement::Done).await.unwrap();
            pipeline.conflicts()
        });
    }
    assert_eq!(tasks.len(), photos.len(), "everybody has a photo");
    tasks.join_all().await.into_iter().sum()
}

async fn check_stampede(backends: usize, casts: &[&[usize]], persons: u32) {
    let folders = Folders::new();
    let folder = folders.fresh();
    let photos = album(casts);
    let conflicts = stampede(&folder, backends, &photos).await;
    let backend = open(&folder);
    let log = read_log(&backend).await;
    let (found, expected) = (groups(&log), truth(&photos));
    assert_eq!(found, expected, "which photos each person is in");
    let tail = backend.store.identity(Seq(0)).await.unwrap();
    assert_eq!(tail.counter, persons, "the counter");
    for number in 1..=persons {
        let row = backend.store.get(&Key::person(person(number))).await.unwrap();
        assert!(row.is_some(), "person{number} has no row");
        let crop = backend.objects.head(&format!("persons/person{number}.jpg")).await.unwrap();
        assert!(crop.is_some(), "person{number} has no crop");
    }
    assert_eq!(backend.store.get(&Key::person(person(persons + 1))).await.unwrap(), None, "one person too many");
    assert_eq!(count(&log, "PhotoProcessed"), photos.len());
    // Nobody knew anybody at the start, so whoever was not first met whoever was.
    assert!(conflicts > 0, "{} workers met no conflict", photos.len());
    let drift = rebuilder(&backend).run(false, |_| ()).await.unwrap();
    assert_eq!(drift.total, 0, "{:#?}", drift.differences);
    println!("{} photos on {backends} backends: {conflicts} conflicts", photos.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_stranger_seen_by_32_at_once_is_one_person() {
    check_stampede(1, &[&[0][..]; 32], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_stranger_seen_through_four_connections_is_one_person() {
    check_stampede(4, &[&[0][..]; 32], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn strangers_in_company_are_told_apart() {
    let casts: Vec<&[usize]> = [&[0, 1][..], &[1, 2], &[2, 3], &[3, 0], &[0, 2], &[1, 3]].repeat(4);
    check_stampede(2, &casts, 4).await;
}

/// Puts a row into the file the way nobody of ours writes it.
fn write_by_hand(folder: &Path, key: &Key, text: &str) {
    let file = Connection::open(folder.join("sparks.db")).unwrap();
    let insert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)";
    assert_eq!(file.execute(insert, [&key.pk, &key.sk, text]).unwrap(), 1);
}

fn read_by_hand(folder: &Path, key: &Key) -> String {
    let file = Connection::open(folder.join("sparks.db")).unwrap();
    let select = "SELECT item FROM items WHERE PK = ? AND SK = ?";
    file.query_row(select, [&key.pk, &key.sk], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_number_that_somebody_else_uses_is_skipped() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    let photos = album(&[&[0], &[1], &[0, 1]]);
    let foreign = r#"{ "zeal" : 1.10,  "displayName":"Somebody else's", "entityType": "PERSON" }"#;
    write_by_hand(&folder, &Key::person(person(1)), foreign);
    upload(&backend, &photos).await;
    drain(&backend).await;

    let named: Vec<Vec<_>> = [persons_in(&backend, &photos[0]).await, persons_in(&backend, &photos[1]).await].to_vec();
    assert_eq!(named, [[person(2)], [person(3)]], "the strangers' numbers");
    assert_eq!(persons_in(&backend, &photos[2]).await, [person(2), person(3)]);
    assert_eq!(read_by_hand(&folder, &Key::person(person(1))), foreign, "the row of somebody else");
    assert_eq!(backend.store.identity(Seq(0)).await.unwrap().counter, 3);
    let drift = rebuilder(&backend).run(true, |_| ()).await.unwrap();
    assert_eq!((drift.total, drift.renamed.len()), (0, 0), "{:#?}", drift.differences);
    assert_eq!(read_by_hand(&folder, &Key::person(person(1))), foreign, "the row of somebody else after a rebuild");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_counter_after_a_skipped_number_is_the_number_given_out() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    write_by_hand(&folder, &Key::person(person(1)), "{}");
    upload(&backend, &album(&[&[0]])).await;
    drain(&backend).await;
    assert_eq!(backend.store.identity(Seq(0)).await.unwrap().counter, 2);
    assert_eq!(read_by_hand(&folder, &Key::person(person(1))), "{}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_that_somebody_else_moved_leaves_a_hole() {
    let folders = Folders::new();
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
