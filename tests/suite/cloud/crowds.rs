//! Photos of more persons than one transaction takes, whose workers are killed in the middle.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use sparks_aws::{DynamoStore, Tables};
use sparks_domain::{Event, Identity, Key, Merges, Presence, Projection, Verdict};
use sparks_engine::{
    Commit, Content, Filter, Objects, Outcome, PhotoGuard, PhotoRef, Pipeline, PutMode, Query, Store, Turnstile,
};
use sparks_tests::{
    emulator::{self, Emulator},
    proxy::Proxy,
    samples::{allocated, decided_face, face, image, nothing, person, processed, set, uploader},
    worker::{open, pipeline},
};

const TRANSACTION: &str = "DynamoDB_20120810.TransactWriteItems";
const PERSONS: u32 = 150;

/// Strangers in one photo, all of whom get numbers.
fn strangers() -> Commit {
    let (photo, numbers) = (image(1), (1..=PERSONS).collect::<Vec<_>>());
    let mut seen = processed(&photo, "v1", &numbers);
    if let Event::PhotoProcessed(event) = &mut seen {
        event.faces.iter_mut().zip(&numbers).for_each(|(face, n)| face.verdict = Verdict::Founded(person(*n)));
    }
    let events = vec![allocated(&photo, PERSONS, &numbers), seen];
    let project = |event| Projection::default().project(None, event, nothing().when, &Merges::default());
    let faces = (0..).zip(&numbers).map(|(n, p)| decided_face(face(&photo, n), *p as u8, Some(*p), true));
    Commit {
        photo: Some(PhotoGuard { image: photo.clone(), before: None }),
        identity: Some(Identity::default()),
        mutations: events.iter().flat_map(project).collect(),
        signatures: faces.collect(),
        events,
        ..nothing()
    }
}

/// Tables in which the platform has made the photo's row.
async fn with_image_row(emulator: &Emulator) -> (Tables, Arc<DynamoStore>) {
    let (tables, connection) = (emulator.tables().await, emulator.connect().await);
    let store = DynamoStore::open(&connection, tables.clone(), 8).await.unwrap();
    let row = json!({ "entityType": "IMAGE", "uploadedBy": uploader() });
    let row = set(&Key::image(&image(1), &uploader()), Presence::Any, row);
    store.commit(&Commit { mutations: vec![row], ..nothing() }).await.unwrap();
    (tables, Arc::new(store))
}

/// A store of somebody who is killed after so many transactions, and who stands before it.
async fn dying(emulator: &Emulator, tables: &Tables, survived: usize) -> (Arc<DynamoStore>, Proxy) {
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let left = AtomicUsize::new(survived);
    proxy.judge(move |target, _| {
        let is_dead = target == TRANSACTION
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        is_dead.then(|| (403, r#"{"__type":"AccessDeniedException","message":"killed"}"#.to_owned()))
    });
    let store = DynamoStore::open(&emulator::connect(&proxy.endpoint()).await, tables.clone(), 8).await.unwrap();
    (Arc::new(store), proxy)
}

/// The pipeline over this store, and a folder with the crops of everybody.
async fn pipeline_over(store: Arc<DynamoStore>, folder: &std::path::Path) -> Pipeline {
    let objects = Arc::clone(&open(folder).objects) as Arc<dyn Objects>;
    for number in 1..=PERSONS {
        let key = Projection::crop_key(person(number));
        objects.put(&key, vec![1], Content::picture("image/jpeg"), PutMode::Replace).await.unwrap();
    }
    pipeline(store, objects).await.unwrap()
}

async fn taggings(store: &DynamoStore) -> usize {
    let filter = Filter::Partition { pk: image(1).to_string(), sk_prefix: "PERSON#".into() };
    store.query(&Query { filter, after: None, limit: 1000, backwards: false }).await.unwrap().items.len()
}

async fn persons(store: &DynamoStore) -> usize {
    let keys: Vec<Key> = (1..=PERSONS).map(|number| Key::person(person(number))).collect();
    store.batch_get(&keys).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn strangers_whose_rows_a_kill_left_out_get_them_when_the_message_comes_again() {
    let (emulator, folder) = (Emulator::start().await, tempfile::tempdir().unwrap());
    for survived in 1..4 {
        let (tables, after) = with_image_row(&emulator).await;
        let (store, _proxy) = dying(&emulator, &tables, survived).await;
        assert!(store.commit(&strangers()).await.is_err(), "{survived} transactions are enough");
        if survived == 1 {
            assert!(persons(&after).await < PERSONS as usize, "nobody is left out");
        }
        let pipeline = pipeline_over(Arc::clone(&after), folder.path()).await;
        let key = format!("originals/{}.jpg", image(1));
        let version = Some("v1".to_owned());
        let photo = PhotoRef { image: image(1), key, version, sequencer: None, file_name: None, finished: None };
        let outcome = pipeline.process(photo, &Turnstile::default().ticket()).await.unwrap();
        assert!(matches!(outcome, Outcome::AlreadyCommitted), "{outcome:?}");
        assert_eq!((persons(&after).await, taggings(&after).await), (PERSONS as usize, PERSONS as usize));
        let row = after.get(&Key::person(person(PERSONS))).await.unwrap().unwrap();
        assert_eq!(row.text("displayName"), Some("person150"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tags_that_a_kill_left_go_when_the_deletion_comes_again() {
    let (emulator, folder) = (Emulator::start().await, tempfile::tempdir().unwrap());
    let (tables, after) = with_image_row(&emulator).await;
    after.commit(&strangers()).await.unwrap();
    assert_eq!(taggings(&after).await, PERSONS as usize);
    let (store, _proxy) = dying(&emulator, &tables, 1).await;
    let killed = pipeline_over(store, folder.path()).await.delete_as_owner(&image(1)).await;
    assert!(killed.is_err(), "{killed:?}");
    assert!((1..PERSONS as usize).contains(&taggings(&after).await), "it was killed in the middle");

    let deleted = pipeline_over(Arc::clone(&after), folder.path()).await.delete_as_owner(&image(1)).await.unwrap();
    assert!(matches!(deleted, Outcome::Deleted), "{deleted:?}");
    assert_eq!((taggings(&after).await, persons(&after).await), (0, 0), "everybody was in this photo alone");
    let log = after.read_log(&sparks_domain::Position::default(), 1000).await.unwrap();
    let deletions = log.iter().filter(|recorded| matches!(recorded.event, Event::PhotoDeleted(_))).count();
    assert_eq!(deletions, 1);
}

/// Thirty persons were known by nothing but this photo, and each has a face in five others: more than a transaction takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_many_who_are_known_by_it_alone_is_deleted() {
    let (emulator, folder) = (Emulator::start().await, tempfile::tempdir().unwrap());
    let (_, store) = with_image_row(&emulator).await;
    let numbers: Vec<u32> = (1..=30).collect();
    let commit = async |photo: u64, persons: &[u32], template: bool| {
        let image = image(photo);
        let faces = (0..).zip(persons).map(|(n, p)| decided_face(face(&image, n), *p as u8, Some(*p), template));
        let commit = Commit {
            photo: Some(PhotoGuard { image: image.clone(), before: None }),
            events: vec![processed(&image, "v1", persons)],
            signatures: faces.collect(),
            ..nothing()
        };
        store.commit(&commit).await.unwrap();
    };
    commit(1, &numbers, true).await;
    for number in &numbers {
        for n in 0..5 {
            commit(1000 + u64::from(*number) * 10 + n, &[*number], false).await;
        }
    }
    let pipeline = pipeline_over(Arc::clone(&store), folder.path()).await;
    pipeline.delete_as_owner(&image(1)).await.unwrap();
    let kept = store.faces_of(&numbers.iter().map(|n| person(*n)).collect::<Vec<_>>()).await.unwrap();
    let known: BTreeSet<_> = kept.iter().filter(|face| face.kept.template).map(|face| face.kept.person).collect();
    assert!(known.len() >= 15, "{} persons are known by another photo", known.len());
}
