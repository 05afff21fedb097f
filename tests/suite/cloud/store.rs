//! The DynamoDB store keeps the contracts.

use std::sync::Arc;

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use sparks_aws::DynamoStore;
use sparks_domain::{FaceId, IdentityHead, Level, Seq};
use sparks_engine::{
    Commit, CommitError, Erasure, Maintenance, Store, StoreError, StoredFace, SystemClock, raise_level,
};
use sparks_tests::{
    contract,
    dynoxide::Dynoxide,
    emulator::Emulator,
    samples::{allocated, decided_face, empty_commit, face, image, person, processed},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::store(async || Arc::new(emulator.store().await) as Arc<dyn Store>).await;
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn maintenance_of_the_store_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::maintenance(async || Arc::new(emulator.store().await) as Arc<dyn Maintenance>).await;
    report.assert_passed();
}

/// On a second implementation of DynamoDB.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "installs Dynoxide, which takes minutes"]
async fn the_store_keeps_its_contracts_on_dynoxide() {
    let dynoxide = Dynoxide::start().await;
    let report = contract::store(async || Arc::new(dynoxide.store().await) as Arc<dyn Store>).await;
    report.assert_passed();
    let report = contract::maintenance(async || Arc::new(dynoxide.store().await) as Arc<dyn Maintenance>).await;
    report.assert_passed();
}

/// Writes a row to the log table.
async fn write(client: &Client, table: &str, pk: &str, sk: &str, attribute: &str, value: AttributeValue) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = client.put_item().table_name(table).item("PK", text(pk)).item("SK", text(sk));
    put.item(attribute, value).send().await.unwrap();
}

/// Logs of the first level have all faces of a photo in one item, as earlier releases do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn faces_that_were_stored_at_the_first_level_are_found_and_changed() {
    let emulator = Emulator::start().await;
    let store = emulator.store().await;
    let faces: Vec<StoredFace> = (0..250).map(|n| decided_face(face(&image(1), n), 1, Some(1), false)).collect();
    let ids: Vec<FaceId> = faces.iter().map(|face| face.face.clone()).collect();
    store.commit(&Commit { signatures: faces.clone(), ..empty_commit() }).await.unwrap();

    raise_level(&store, Level::MAX, "operator", &SystemClock).await.unwrap();

    let sorted = |mut found: Vec<StoredFace>| {
        found.sort_by_key(|found| found.face.n);
        found
    };
    assert_eq!(sorted(store.signatures(&ids).await.unwrap()), faces);
    let (identified, promoted) = (vec![(ids[220].clone(), person(2))], vec![ids[120].clone()]);
    let erased = Erasure { faces: vec![ids[10].clone(), ids[249].clone()], ..Erasure::default() };
    let events = vec![processed(&image(2), "v1", &[])];
    store.commit(&Commit { events, identified, promoted, erased, ..empty_commit() }).await.unwrap();
    let found = store.faces_of(&[person(1), person(2)]).await.unwrap();
    assert_eq!(found.len(), 248);
    let kept: Vec<StoredFace> = found.into_iter().map(|found| found.kept).collect();
    assert!(kept.iter().any(|kept| kept.face == ids[220] && kept.person == Some(person(2))));
    assert!(kept.iter().any(|kept| kept.face == ids[120] && kept.template));
    let erased = Erasure { photos: vec![image(1)], ..Erasure::default() };
    store.commit(&Commit { erased, ..empty_commit() }).await.unwrap();
    assert_eq!(store.signatures(&ids).await.unwrap(), []);
}

/// A commit beyond the limits of DynamoDB fails with an error that names the limit, and writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_beyond_a_limit_names_the_limit() {
    let emulator = Emulator::start().await;
    let store = emulator.store().await;
    let photos: Vec<u64> = (1..=120).collect();
    for n in &photos {
        let signatures = vec![decided_face(face(&image(*n), 0), 1, Some(1), false)];
        store.commit(&Commit { signatures, ..empty_commit() }).await.unwrap();
    }
    let faces = photos.iter().map(|n| face(&image(*n), 0)).collect();
    let erased = Erasure { faces, ..Erasure::default() };
    let refused = store.commit(&Commit { erased, ..empty_commit() }).await;
    let Err(CommitError::Store(StoreError::Refused(message))) = refused else { panic!("{refused:?}") };
    assert!(message.contains("120 actions") && message.contains("at most 64 photos"), "{message}");
    assert_eq!(store.faces_of(&[person(1)]).await.unwrap().len(), 120);
}

/// An existing event is never overwritten, even if the head of its lane is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_is_overwritten_even_with_a_wrong_head() {
    let emulator = Emulator::start().await;
    let (connection, tables) = (emulator.connect().await, emulator.tables().await);
    let (client, log) = (connection.dynamodb(), tables.log.clone());
    let store = Arc::new(DynamoStore::open(&connection, tables, 1).await.unwrap());
    let commit = Commit { events: vec![processed(&image(1), "v1", &[])], ..empty_commit() };
    let sort_key = format!("{:012}#{}", 1, commit.when);
    let existing = AttributeValue::S("existing".into());
    for partition in ["EVENTS", "EVENTS#1"] {
        write(&client, &log, partition, &sort_key, "event_type", existing.clone()).await;
    }

    // The commit is retried until the head is right.
    let (committing, photo) = (Arc::clone(&store), commit.clone());
    let committing = tokio::spawn(async move { committing.commit(&photo).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!committing.is_finished());
    write(&client, &log, "HEAD", "00001", "seq", AttributeValue::N("1".into())).await;
    let recorded = committing.await.unwrap().unwrap();
    assert_eq!(recorded.iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [Seq(2)]);

    // A decision about persons has to be made again.
    let allocation = Commit {
        identity: Some(IdentityHead::default()),
        events: vec![allocated(&image(2), 0, &[1])],
        ..empty_commit()
    };
    let refused = store.commit(&allocation).await;
    assert!(matches!(refused, Err(CommitError::IdentityMoved)), "{refused:?}");
    for partition in ["EVENTS", "EVENTS#1"] {
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let get = client.get_item().table_name(&log).key("PK", key(partition)).key("SK", key(&sort_key));
        let found = get.send().await.unwrap().item.unwrap();
        assert_eq!(found.get("event_type"), Some(&existing), "{partition}");
    }
}
