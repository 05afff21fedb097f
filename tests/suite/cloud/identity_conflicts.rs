//! One identity becomes one person, even if many workers process photos of it at the same time.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use sparks_aws::{DynamoStore, S3Objects};
use sparks_domain::{Key, Position, Presence};
use sparks_engine::{ArrivalOrder, Clock, Commit, Content, Objects, PhotoRef, Pipeline, PutMode, Store, SystemClock};
use sparks_tests::{
    album::{Photo, photo},
    emulator::{self, Emulator},
    platform_actions::original_key,
    proxy::Proxy,
    samples::{empty_commit, set, uploader},
    snapshot::{count, expected_groups, photo_groups},
    worker::{image_of, pipeline},
};
use tokio::task::JoinSet;

async fn upload(store: &DynamoStore, objects: &S3Objects, photo: &Photo) {
    let row = set(&Key::image(&image_of(photo), &uploader()), Presence::Any, json!({ "entityType": "IMAGE" }));
    store.commit(&Commit { mutations: vec![row], ..empty_commit() }).await.unwrap();
    let content = Content::image("image/jpeg");
    objects.put(&original_key(photo), photo.jpeg.clone(), content, PutMode::Replace).await.unwrap();
}

async fn process(pipeline: &Pipeline, photo: &Photo) {
    let (image, key) = (image_of(photo), original_key(photo));
    let photo = PhotoRef { image, key, version: None, sequencer: None, file_name: None, finished: None };
    pipeline.process(photo, &ArrivalOrder::default().slot(SystemClock.now())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_concurrent_workers_create_one_person() {
    let emulator = Emulator::start().await;
    let (connection, tables) = (emulator.connect().await, emulator.tables().await);
    let objects = Arc::new(S3Objects::new(&connection, &emulator.bucket().await));
    let open = async || Arc::new(DynamoStore::open(&connection, tables.clone(), 8).await.unwrap());
    let photos: Vec<Photo> = (0..32).map(|n| photo(n, &[7])).collect();
    let mut workers = Vec::new();
    for photo in &photos {
        let store = open().await;
        upload(&store, &objects, photo).await;
        workers.push(pipeline(store as Arc<dyn Store>, Arc::clone(&objects) as Arc<_>).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for (worker, photo) in workers.into_iter().zip(photos.clone()) {
        tasks.spawn(async move {
            process(&worker, &photo).await;
            worker.conflicts()
        });
    }
    let conflicts: u64 = tasks.join_all().await.into_iter().sum();
    let store = open().await;
    let log = store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!((count(&log, "PhotoProcessed"), count(&log, "PersonsAllocated")), (32, 1));
    assert_eq!(photo_groups(&log), expected_groups(&photos));
    assert!(conflicts > 0, "no commit conflict: the workers did not overlap");
    println!("{conflicts} commit conflicts");
}

/// The reads are the photo's row before the decision and the identity head before the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_known_persons_costs_one_transaction_and_two_reads() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let store = Arc::new(emulator.store_through(&emulator::connect(&proxy.endpoint()).await).await);
    let objects = Arc::new(S3Objects::new(&emulator.connect().await, &emulator.bucket().await));
    let photos: Vec<Photo> = (0..12).map(|n| photo(n, &[1, 2])).collect();
    for photo in &photos {
        upload(&store, &objects, photo).await;
    }
    let worker = pipeline(Arc::clone(&store) as Arc<dyn Store>, objects as Arc<_>).await.unwrap();
    for (n, photo) in photos.iter().enumerate() {
        proxy.take_requests();
        process(&worker, photo).await;
        let mut requests: BTreeMap<String, usize> = BTreeMap::new();
        for target in proxy.take_requests() {
            *requests.entry(target.trim_start_matches("DynamoDB_20120810.").to_owned()).or_default() += 1;
        }
        // The first photo allocates the persons, and may have to read the heads of lanes.
        if n > 0 {
            let expected = [("BatchGetItem", 1), ("Query", 1), ("TransactWriteItems", 1)];
            assert_eq!(requests, expected.map(|(name, times)| (name.to_owned(), times)).into(), "photo {n}");
        }
    }
}
