//! Faults that the emulator does not produce: throttling, transaction conflicts, and crashes between transactions.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use sparks_aws::{DynamoStore, Tables};
use sparks_domain::{Key, Position, Presence};
use sparks_engine::{Commit, CommitError, Filter, Maintenance, PhotoGuard, Query, Store, TemplateScope};
use sparks_tests::{
    contract,
    emulator::{self, Emulator},
    proxy::{Proxy, throttled_response, transaction_conflict_response},
    samples::{decided_face, empty_commit, face, image, person, processed, set, uploader},
};

const TRANSACTION: &str = "DynamoDB_20120810.TransactWriteItems";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_with_throttling_and_conflicts_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let proxy = Proxy::start(&emulator.endpoint()).await;
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let counted = Arc::clone(&counts);
    proxy.intercept(move |target, body| match fastrand::u8(..100) {
        0..30 if target == TRANSACTION => {
            counted[0].fetch_add(1, Ordering::Relaxed);
            Some(transaction_conflict_response(body))
        }
        30..50 if target.starts_with("DynamoDB_") => {
            counted[1].fetch_add(1, Ordering::Relaxed);
            Some(throttled_response(target, body))
        }
        _ => None,
    });
    let connection = emulator::connect(&proxy.endpoint()).await;
    let make = async || Arc::new(emulator.store_through(&connection).await) as Arc<dyn Store>;
    contract::store(make).await.assert_passed();
    let [conflicts, throttles] = [&counts[0], &counts[1]].map(|count| count.load(Ordering::Relaxed));
    println!("{conflicts} conflicts, {throttles} throttled requests");
    assert!(conflicts > 50 && throttles > 50, "too few: {conflicts} conflicts, {throttles} throttled requests");
}

/// A reader may see the event of a transaction before its faces. If it took them for erased, the person would be allocated again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_template_that_is_visible_later_than_its_event_is_read() {
    let emulator = Emulator::start().await;
    let (tables, writer) = with_image_row(&emulator).await;
    let commit = Commit { signatures: vec![decided_face(face(&image(1), 1), 1, Some(1), true)], ..group_photo() };
    writer.commit(&commit).await.unwrap();

    let proxy = Proxy::start(&emulator.endpoint()).await;
    let (hidden, name) = (Arc::new(AtomicUsize::new(0)), tables.faces.clone());
    let count = Arc::clone(&hidden);
    proxy.intercept(move |target, body| match target {
        "DynamoDB_20120810.BatchGetItem" if String::from_utf8_lossy(body).contains(&name) => {
            count.fetch_add(1, Ordering::Relaxed);
            Some((200, json!({ "Responses": { name.as_str(): [] }, "UnprocessedKeys": {} }).to_string()))
        }
        // The first consistent read conflicts with the write.
        "DynamoDB_20120810.TransactGetItems" if count.fetch_add(1, Ordering::Relaxed) == 1 => {
            Some(transaction_conflict_response(body))
        }
        _ => None,
    });
    let reader = DynamoStore::open(&emulator::connect(&proxy.endpoint()).await, tables, 8).await.unwrap();
    let templates = reader.templates(&Position::default(), TemplateScope::Everything, 100).await.unwrap().faces;
    assert_eq!(templates.len(), 1, "the template is missing");
    assert!(hidden.load(Ordering::Relaxed) >= 3, "nothing was hidden");
}

const PERSONS: u32 = 150;

/// Returns the commit of a photo with more persons than one transaction may contain.
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
        ..empty_commit()
    }
}

async fn taggings(store: &DynamoStore) -> usize {
    let filter = Filter::Partition { pk: image(1).to_string(), sk_prefix: "PERSON#".into() };
    store.query(&Query { filter, after: None, limit: 1000, backwards: false }).await.unwrap().items.len()
}

/// Creates tables with the IMAGE row of the photo.
pub async fn with_image_row(emulator: &Emulator) -> (Tables, DynamoStore) {
    let (tables, connection) = (emulator.tables().await, emulator.connect().await);
    let store = DynamoStore::open(&connection, tables.clone(), 8).await.unwrap();
    let row = set(&Key::image(&image(1), &uploader()), Presence::Any, json!({ "entityType": "IMAGE" }));
    store.commit(&Commit { mutations: vec![row], ..empty_commit() }).await.unwrap();
    (tables, store)
}

async fn assert_complete(store: &DynamoStore) {
    assert_eq!(taggings(store).await, PERSONS as usize);
    assert_eq!(store.read_log(&Position::default(), 10).await.unwrap().len(), 1);
    for number in 1..=PERSONS {
        assert_eq!(store.faces_of(&[person(number)]).await.unwrap().len(), 1, "faces of person{number}");
    }
    let persons =
        store.co_occurrences(None).await.unwrap().into_iter().flat_map(|(a, b)| [a, b]).collect::<BTreeSet<_>>();
    assert_eq!(persons.len(), PERSONS as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_photo_beyond_one_transaction_is_committed() {
    let emulator = Emulator::start().await;
    let (_, store) = with_image_row(&emulator).await;
    store.commit(&group_photo()).await.unwrap();
    assert_complete(&store).await;
    let again = store.commit(&group_photo()).await;
    assert!(matches!(again, Err(CommitError::PhotoMoved)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_photo_is_completed_after_a_crash_between_transactions() {
    let emulator = Emulator::start().await;
    // Fails before each transaction except the first, which is the commit.
    for transactions in 1..4 {
        let (tables, after) = with_image_row(&emulator).await;
        let proxy = Proxy::start(&emulator.endpoint()).await;
        let left = AtomicUsize::new(transactions);
        proxy.intercept(move |target, _| {
            let is_crashed = target == TRANSACTION
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
            is_crashed.then(|| (403, r#"{"__type":"AccessDeniedException","message":"killed"}"#.to_owned()))
        });
        let crashing = DynamoStore::open(&emulator::connect(&proxy.endpoint()).await, tables.clone(), 8).await.unwrap();
        let commit = group_photo();
        let killed = crashing.commit(&commit).await;
        assert!(killed.is_err(), "{transactions} transactions are enough");
        if transactions == 1 {
            assert!(taggings(&after).await < PERSONS as usize, "the first transaction wrote all rows");
        }

        // The next worker that receives the message finds the photo committed and writes its rows again.
        let state = after.photo(&image(1)).await.unwrap();
        assert!(state.is_some(), "the photo is not committed");
        let guard = PhotoGuard { image: image(1), before: state.clone() };
        let again = Commit { mutations: commit.mutations, ..Commit::without_events(commit.when, Some(guard)) };
        after.commit(&again).await.unwrap();
        assert_complete(&after).await;
        assert_eq!(after.photo(&image(1)).await.unwrap(), state, "the photo's state");
    }
}
