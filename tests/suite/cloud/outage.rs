//! Services that are away for a while cost time, and nothing else.

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sparks_domain::{Key, Position};
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    platform::original,
    proxy::{Proxy, throttled},
    samples::uploader,
    snapshot::{count, groups, truth},
    worker::image_of,
};

use super::account::Account;

fn row(photo: &Photo) -> Value {
    let Key { pk, sk } = Key::image(&image_of(photo), &uploader());
    json!({ "PK": pk, "SK": sk, "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original(photo), "tags": [] })
}

/// A worker that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn processed(account: &Account) -> usize {
    count(&account.store.read_log(&Position::default(), 1000).await.unwrap(), "PhotoProcessed")
}

async fn until(account: &Account, photos: usize) {
    let started = Instant::now();
    while processed(account).await < photos {
        assert!(started.elapsed() < Duration::from_secs(90), "{} photos in 90 s", processed(account).await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_outage_and_a_busy_table_cost_no_message() {
    let account = Account::new(&[("SPARKS_QUEUE_VISIBILITY_SECONDS", "10"), ("SPARKS_AWS_POLL_SECONDS", "1")]).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    proxy.judge(|target, _| (target.starts_with("DynamoDB_") && fastrand::bool()).then(throttled));
    let photos: Vec<Photo> = (0..30).map(|n| photo(n, &[n as usize % 5])).collect();
    for photo in &photos[..20] {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    let mut command = account.command(["run"]);
    command.env("SPARKS_AWS_ENDPOINT", proxy.endpoint()).stderr(Stdio::null());
    let worker = Running(command.spawn().unwrap());
    until(&account, 5).await;
    proxy.set_down(true);
    for photo in &photos[20..] {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    tokio::time::sleep(Duration::from_secs(8)).await;
    proxy.set_down(false);
    until(&account, photos.len()).await;
    drop(worker);
    let log = account.store.read_log(&Position::default(), 1000).await.unwrap();
    assert_eq!(groups(&log), truth(&photos));
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}
