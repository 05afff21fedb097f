//! The AWS adapter of the platform client keeps the contract.

use std::sync::Arc;

use sparks_aws::{AwsPlatformClient, DynamoStore, S3Objects};
use sparks_engine::PlatformClient;
use sparks_tests::{
    contract::{self, PlatformFixture},
    emulator::Emulator,
};

use super::account::{Account, BUCKET};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_platform_client_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let connection = emulator.connect().await;
    let make = async || {
        let (tables, bucket) = (emulator.tables().await, emulator.bucket().await);
        PlatformFixture {
            platform: Arc::new(AwsPlatformClient::new(&connection, &bucket, &tables.platform, "sparks-work", None)),
            objects: Arc::new(S3Objects::new(&connection, &bucket)),
            store: Arc::new(DynamoStore::open(&connection, tables, 8).await.unwrap()),
        }
    };
    contract::platform_client(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn setup_connects_the_bucket_to_its_queue_only() {
    let account = Account::new(&[]).await;
    let connection = account.emulator.connect().await;
    let client_of = |queue: &str| AwsPlatformClient::new(&connection, BUCKET, "sparks", queue, None);
    assert!(client_of("sparks-work").has_upload_notifications().await.unwrap());
    assert!(!client_of("others").has_upload_notifications().await.unwrap());
}
