//! What the emulator never says: that a table is too busy, that a transaction met another, and that a worker is dead.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use sparks_aws::{DynamoStore, Tables};
use sparks_domain::{Key, Position, Presence};
use sparks_engine::{Commit, CommitError, Filter, Maintenance, PhotoGuard, Query, Reach, Store, StoreError};
use sparks_tests::{
    contract,
    emulator::{self, Emulator},
    proxy::{Proxy, conflict, throttled},
    samples::{decided_face, face, image, nothing, person, processed, set, uploader},
};

const TRANSACTION: &str = "DynamoDB_20120810.TransactWriteItems";

/// How many actions a request has.
fn actions(body: &[u8]) -> usize {
    serde_json::from_slice::<Value>(body).unwrap()["TransactItems"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_is_throttled_and_contended_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let met = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let counted = Arc::clone(&met);
    proxy.judge(move |target, body| match fastrand::u8(..100) {
        0..30 if target == TRANSACTION => {
            counted[0].fetch_add(1, Ordering::Relaxed);
            Some(conflict(actions(body)))
        }
        30..50 if target.starts_with("DynamoDB_") => {
            counted[1].fetch_add(1, Ordering::Relaxed);
            Some(throttled())
        }
        _ => None,
    });
    let connection = emulator::connect(&proxy.endpoint()).await;
    let make = async || Arc::new(emulator.store_through(&connection).await) as Arc<dyn Store>;
    contract::store(make).await.assert_passed();
    let [conflicts, throttles] = [&met[0], &met[1]].map(|met| met.load(Ordering::Relaxed));
    println!("{conflicts} conflicts and {throttles} refusals met on the way");
    assert!(conflicts > 50 && throttles > 50, "{conflicts} conflicts and {throttles} refusals are too few");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_that_stays_too_busy_says_so() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let store = emulator.store_through(&emulator::connect(&proxy.endpoint()).await).await;
    proxy.judge(|target, _| target.starts_with("DynamoDB_").then(throttled));
    let refused = store.photo(&image(1)).await;
    assert!(matches!(refused, Err(StoreError::Busy(_))), "{refused:?}");
    let refused = store.commit(&Commit { events: vec![processed(&image(1), "v1", &[])], ..nothing() }).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Busy(_)))), "{refused:?}");
    proxy.judge(|_, _| None);
    assert_eq!(store.photo(&image(1)).await.unwrap(), None);
}

/// A reader may see the event of a transaction before its faces. Whoever took these for erased would found the person again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_face_that_is_seen_later_than_its_event_is_learnt() {
    let emulator = Emulator::start().await;
    let (tables, writer) = with_image_row(&emulator).await;
    let commit = Commit { signatures: vec![decided_face(face(&image(1), 1), 1, Some(1), true)], ..group_photo() };
    writer.commit(&commit).await.unwrap();

    let proxy = Proxy::start(&emulator.endpoint()).await;
    let (hidden, name) = (Arc::new(AtomicUsize::new(0)), tables.faces.clone());
    let count = Arc::clone(&hidden);
    proxy.judge(move |target, body| match target {
        "DynamoDB_20120810.BatchGetItem" if String::from_utf8_lossy(body).contains(&name) => {
            count.fetch_add(1, Ordering::Relaxed);
            Some((200, json!({ "Responses": { name.as_str(): [] }, "UnprocessedKeys": {} }).to_string()))
        }
        // And the first time even that is being written.
        "DynamoDB_20120810.TransactGetItems" if count.fetch_add(1, Ordering::Relaxed) == 1 => Some(conflict(1)),
        _ => None,
    });
    let reader = DynamoStore::open(&emulator::connect(&proxy.endpoint()).await, tables, 8).await.unwrap();
    let learnt = reader.templates(&Position::default(), Reach::Everything, 100).await.unwrap().faces;
    assert_eq!(learnt.len(), 1, "somebody is a stranger for ever");
    assert!(hidden.load(Ordering::Relaxed) >= 3, "nothing was hidden");
}

const PERSONS: u32 = 150;

/// A photo with more persons than one transaction has room for.
fn group_photo() -> Commit {
    let (photo, numbers) = (image(1), (1..=PERSONS).collect::<Vec<_>>());
    let tagging = |number: &u32| {
        let row = json!({ "entityType": format!("TAGGING#person{number}") });
        set(&Key::tagging(&photo, person(*number)), Presence::Any, row)
    };
    let row = set(&Key::image(&photo, &uploader()), Presence::Required, json!({ "persons": numbers.len() }));
    let faces = numbers.iter().map(|n| decided_face(face(&photo, *n as u16), *n as u8, Some(*n), *n % 3 == 0));
    Commit {
        photo: Some(PhotoGuard { image: photo.clone(), before: None }),
        events: vec![processed(&photo, "v1", &numbers)],
        mutations: std::iter::once(row).chain(numbers.iter().map(tagging)).collect(),
        signatures: faces.collect(),
        ..nothing()
    }
}

async fn taggings(store: &DynamoStore) -> usize {
    let filter = Filter::Partition { pk: image(1).to_string(), sk_prefix: "PERSON#".into() };
    store.query(&Query { filter, after: None, limit: 1000, backwards: false }).await.unwrap().items.len()
}

/// Tables in which the platform has made the photo's row.
pub async fn with_image_row(emulator: &Emulator) -> (Tables, DynamoStore) {
    let (tables, connection) = (emulator.tables().await, emulator.connect().await);
    let store = DynamoStore::open(&connection, tables.clone(), 8).await.unwrap();
    let row = set(&Key::image(&image(1), &uploader()), Presence::Any, json!({ "entityType": "IMAGE" }));
    store.commit(&Commit { mutations: vec![row], ..nothing() }).await.unwrap();
    (tables, store)
}

async fn is_complete(store: &DynamoStore) {
    assert_eq!(taggings(store).await, PERSONS as usize);
    assert_eq!(store.read_log(&Position::default(), 10).await.unwrap().len(), 1);
    for number in 1..=PERSONS {
        assert_eq!(store.faces_of(&[person(number)]).await.unwrap().len(), 1, "the faces of person{number}");
    }
    let alone = store.company(None).await.unwrap().into_iter().flat_map(|(a, b)| [a, b]).collect::<BTreeSet<_>>();
    assert_eq!(alone.len(), PERSONS as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_photo_beyond_one_transaction_is_committed() {
    let emulator = Emulator::start().await;
    let (_, store) = with_image_row(&emulator).await;
    store.commit(&group_photo()).await.unwrap();
    is_complete(&store).await;
    let again = store.commit(&group_photo()).await;
    assert!(matches!(again, Err(CommitError::PhotoMoved)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_photo_survives_a_kill_in_the_middle() {
    let emulator = Emulator::start().await;
    // Killed before each transaction but the first, which is the commit itself.
    for survived in 1..4 {
        let (tables, after) = with_image_row(&emulator).await;
        let proxy = Proxy::start(&emulator.endpoint()).await;
        let left = AtomicUsize::new(survived);
        proxy.judge(move |target, _| {
            let is_dead = target == TRANSACTION
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
            is_dead.then(|| (403, r#"{"__type":"AccessDeniedException","message":"killed"}"#.to_owned()))
        });
        let dying = DynamoStore::open(&emulator::connect(&proxy.endpoint()).await, tables.clone(), 8).await.unwrap();
        let commit = group_photo();
        let killed = dying.commit(&commit).await;
        assert!(killed.is_err(), "{survived} transactions are enough");
        if survived == 1 {
            assert!(taggings(&after).await < PERSONS as usize, "nothing is left to do after the first");
        }

        // Whoever gets the message next finds the photo committed, and says again what the log says of it.
        let state = after.photo(&image(1)).await.unwrap();
        assert!(state.is_some(), "the photo is not committed");
        let guard = PhotoGuard { image: image(1), before: state.clone() };
        let again = Commit { mutations: commit.mutations, ..Commit::without_events(commit.when, Some(guard)) };
        after.commit(&again).await.unwrap();
        is_complete(&after).await;
        assert_eq!(after.photo(&image(1)).await.unwrap(), state, "the photo's state");
    }
}
