//! Services that are away for a while cost time, and nothing else.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use sparks_domain::Position;
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    proxy::{Proxy, throttled},
    snapshot::{groups, truth},
};

use super::account::{Account, Running};

/// How long services are away.
const MINUTE: Duration = Duration::from_secs(60);

/// An account whose worker sees the cloud through a proxy.
async fn behind_a_proxy() -> (Account, Proxy, Running) {
    let settings = [
        ("SPARKS_QUEUE_VISIBILITY_SECONDS", "10"),
        ("SPARKS_QUEUE_MAX_RECEIVES", "2"),
        ("SPARKS_AWS_POLL_SECONDS", "1"),
    ];
    let account = Account::new(&settings).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let worker = Running::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    (account, proxy, worker)
}

fn album(photos: u64) -> Vec<Photo> {
    (0..photos).map(|n| photo(n, &[n as usize % 5])).collect()
}

/// Everything is processed within a minute, as if nothing had happened.
async fn is_complete(account: &Account, photos: &[Photo]) {
    let back = Instant::now();
    account.until(photos.len()).await;
    assert!(back.elapsed() < MINUTE, "not at work again within a minute");
    let log = account.store.read_log(&Position::default(), 10_000).await.unwrap();
    assert_eq!(groups(&log), truth(photos));
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}

async fn a_table_that_refuses_every_other_call_for_a_minute() {
    let (account, proxy, _worker) = behind_a_proxy().await;
    let photos = album(60);
    proxy.judge(|target, _| (target.starts_with("DynamoDB_") && fastrand::bool()).then(throttled));
    // Some come every few seconds, so that there is always work to refuse.
    for photos in photos.chunks(5) {
        account.upload_all(photos).await;
        tokio::time::sleep(MINUTE / 12).await;
    }
    assert!(account.processed().await > 0, "half of the calls are enough to go on");
    proxy.judge(|_, _| None);
    is_complete(&account, &photos).await;
}

/// The platform's table may be small, and busy for as long as others write to it: what answers every question else is no
/// outage, and waiting spends no attempt.
async fn a_table_that_takes_no_transaction_for_a_minute() {
    let (account, proxy, _worker) = behind_a_proxy().await;
    let photos = album(8);
    proxy.judge(|target, _| (target == "DynamoDB_20120810.TransactWriteItems").then(throttled));
    account.upload_all(&photos).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(account.processed().await, 0);
    proxy.judge(|_, _| None);
    is_complete(&account, &photos).await;
}

async fn a_queue_that_is_down_for_a_minute() {
    let (account, proxy, _worker) = behind_a_proxy().await;
    let photos = album(40);
    account.upload_all(&photos[..20]).await;
    account.until(5).await;
    let refused = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&refused);
    proxy.judge(move |target, _| {
        target.starts_with("AmazonSQS").then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            (503, String::new())
        })
    });
    account.upload_all(&photos[20..]).await;
    tokio::time::sleep(MINUTE).await;
    assert!(refused.load(Ordering::Relaxed) > 0, "the queue was asked");
    proxy.judge(|_, _| None);
    is_complete(&account, &photos).await;
}

async fn a_cloud_that_is_gone_for_a_while() {
    let (account, proxy, _worker) = behind_a_proxy().await;
    let photos = album(30);
    account.upload_all(&photos[..20]).await;
    account.until(5).await;
    proxy.set_down(true);
    account.upload_all(&photos[20..]).await;
    tokio::time::sleep(MINUTE / 6).await;
    proxy.set_down(false);
    is_complete(&account, &photos).await;
}

/// Side by side: they mostly wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn services_that_are_away_cost_no_message() {
    tokio::join!(
        a_table_that_refuses_every_other_call_for_a_minute(),
        a_table_that_takes_no_transaction_for_a_minute(),
        a_queue_that_is_down_for_a_minute(),
        a_cloud_that_is_gone_for_a_while(),
    );
}
