//! The store on DynamoDB keeps the contracts that the embedded one keeps.

use std::sync::Arc;

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use sparks_aws::DynamoStore;
use sparks_domain::{Identity, Seq};
use sparks_engine::{Commit, CommitError, Maintenance, Store};
use sparks_tests::{
    contract,
    dynoxide::Dynoxide,
    emulator::Emulator,
    samples::{allocated, image, nothing, processed},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::store(async || Arc::new(emulator.store().await) as Arc<dyn Store>).await;
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_looks_at_everything_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let report = contract::maintenance(async || Arc::new(emulator.store().await) as Arc<dyn Maintenance>).await;
    report.assert_passed();
}

/// On another emulator than usual.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "installs Dynoxide, which takes minutes"]
async fn the_store_keeps_its_contracts_on_dynoxide() {
    let dynoxide = Dynoxide::start().await;
    let report = contract::store(async || Arc::new(dynoxide.store().await) as Arc<dyn Store>).await;
    report.assert_passed();
    let report = contract::maintenance(async || Arc::new(dynoxide.store().await) as Arc<dyn Maintenance>).await;
    report.assert_passed();
}

/// Puts a row into the log by hand.
async fn write(client: &Client, table: &str, pk: &str, sk: &str, attribute: &str, value: AttributeValue) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = client.put_item().table_name(table).item("PK", text(pk)).item("SK", text(sk));
    put.item(attribute, value).send().await.unwrap();
}

/// Whatever the head of a lane says: a place that is taken stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_is_ever_overwritten() {
    let emulator = Emulator::start().await;
    let (connection, tables) = (emulator.connect().await, emulator.tables().await);
    let (client, log) = (connection.dynamodb(), tables.log.clone());
    let store = Arc::new(DynamoStore::open(&connection, tables, 1).await.unwrap());
    let commit = Commit { events: vec![processed(&image(1), "v1", &[])], ..nothing() };
    let place = format!("{:012}#{}", 1, commit.when);
    let theirs = AttributeValue::S("theirs".into());
    for partition in ["EVENTS", "EVENTS#1"] {
        write(&client, &log, partition, &place, "event_type", theirs.clone()).await;
    }

    // It is tried again until the head says how far the lane has come.
    let (committing, photo) = (Arc::clone(&store), commit.clone());
    let committing = tokio::spawn(async move { committing.commit(&photo).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!committing.is_finished());
    write(&client, &log, "HEAD", "00001", "seq", AttributeValue::N("1".into())).await;
    let recorded = committing.await.unwrap().unwrap();
    assert_eq!(recorded.iter().map(|recorded| recorded.seq).collect::<Vec<_>>(), [Seq(2)]);

    // Whoever decided on persons decides anew.
    let founding =
        Commit { identity: Some(Identity::default()), events: vec![allocated(&image(2), 0, &[1])], ..nothing() };
    let refused = store.commit(&founding).await;
    assert!(matches!(refused, Err(CommitError::IdentityMoved)), "{refused:?}");
    for partition in ["EVENTS", "EVENTS#1"] {
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let get = client.get_item().table_name(&log).key("PK", key(partition)).key("SK", key(&place));
        let found = get.send().await.unwrap().item.unwrap();
        assert_eq!(found.get("event_type"), Some(&theirs), "{partition}");
    }
}
