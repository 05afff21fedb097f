//! The DynamoDB store keeps the contracts.

use std::sync::Arc;

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use sparks_aws::DynamoStore;
use sparks_domain::{IdentityHead, Seq};
use sparks_engine::{Commit, CommitError, Maintenance, Store};
use sparks_tests::{
    contract,
    dynoxide::Dynoxide,
    emulator::Emulator,
    samples::{allocated, empty_commit, image, processed},
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
