//! Whoever plays the platform's part in the cloud keeps the contract that is kept in a folder.

use std::sync::Arc;

use sparks_aws::{CloudPlatform, DynamoStore, S3Objects};
use sparks_engine::Platform;
use sparks_tests::{
    contract::{self, PlatformRig},
    emulator::Emulator,
};

use super::account::{Account, BUCKET};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_platform_keeps_its_contract() {
    let emulator = Emulator::start().await;
    let connection = emulator.connect().await;
    let make = async || {
        let (tables, bucket) = (emulator.tables().await, emulator.bucket().await);
        PlatformRig {
            platform: Arc::new(CloudPlatform::new(&connection, &bucket, &tables.platform, "sparks-work", None)),
            objects: Arc::new(S3Objects::new(&connection, &bucket)),
            store: Arc::new(DynamoStore::open(&connection, tables, 8).await.unwrap()),
        }
    };
    contract::platform(make).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_that_was_set_up_tells_the_queue_and_nobody_else() {
    let account = Account::new(&[]).await;
    let connection = account.emulator.connect().await;
    let listening_to = |queue: &str| CloudPlatform::new(&connection, BUCKET, "sparks", queue, None);
    assert!(listening_to("sparks-work").tells().await.unwrap());
    assert!(!listening_to("others").tells().await.unwrap());
}
