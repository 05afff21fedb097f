//! Outages and throttling of AWS services lose no message.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use sparks_domain::Position;
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    proxy::{Proxy, throttled_response},
    snapshot::{expected_groups, photo_groups},
    worker::image_of,
};
use tokio::time::sleep;

use super::account::{Account, RunningWorker, eventually};

const COMMIT: &str = "DynamoDB_20120810.TransactWriteItems";

/// Starts a worker that reaches AWS through a proxy. An outage lasts several visibility timeouts.
async fn worker_behind_proxy() -> (Account, Proxy, RunningWorker) {
    let settings = [
        ("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "5"),
        ("SPARKS_QUEUE_MAX_ATTEMPTS", "2"),
        ("SPARKS_AWS_POLL_SECONDS", "1"),
    ];
    let account = Account::new(&settings).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let worker = RunningWorker::start(&account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    (account, proxy, worker)
}

fn album(photos: u64) -> Vec<Photo> {
    (0..photos).map(|n| photo(n, &[n as usize % 5])).collect()
}

/// Asserts that all photos are processed within a minute, as if there had been no outage.
async fn assert_complete(account: &Account, photos: &[Photo]) {
    let recovered = Instant::now();
    account.wait_for_photos(photos.len()).await;
    assert!(recovered.elapsed() < Duration::from_secs(60), "not processed within a minute after the outage");
    let log = account.store.read_log(&Position::default(), 10_000).await.unwrap();
    assert_eq!(photo_groups(&log), expected_groups(photos));
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}

async fn half_of_the_table_requests_are_throttled(outage: Duration) {
    let (account, proxy, _worker) = worker_behind_proxy().await;
    let photos = album(outage.as_secs());
    proxy.intercept(|target, body| {
        (target.starts_with("DynamoDB_") && fastrand::bool()).then(|| throttled_response(target, body))
    });
    // Uploads all the time, so that there are always requests to throttle.
    for photos in photos.chunks(5) {
        account.upload_all(photos).await;
        sleep(Duration::from_secs(5)).await;
    }
    assert!(account.processed().await > 0, "no photo was processed with half of the requests");
    proxy.intercept(|_, _| None);
    assert_complete(&account, &photos).await;
}

/// The platform's table may be throttled for as long as other programs write to it. Reads succeed, so this is not an outage, and
/// deferring counts no attempt.
async fn all_commits_are_throttled(outage: Duration) {
    let (account, proxy, worker) = worker_behind_proxy().await;
    let photos = album(8);
    proxy.intercept(|target, body| (target == COMMIT).then(|| throttled_response(target, body)));
    account.upload_all(&photos).await;
    let started = Instant::now();
    // At least until the retries of a commit, whose delays are random, are used up.
    while started.elapsed() < outage || !worker.log().contains("throttled: deferred without counting an attempt") {
        assert!(started.elapsed() < outage + Duration::from_secs(120), "no message was deferred: {}", worker.log());
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(account.processed().await, 0);
    proxy.intercept(|_, _| None);
    assert_complete(&account, &photos).await;
}

async fn the_queue_is_down(outage: Duration) {
    let (account, proxy, _worker) = worker_behind_proxy().await;
    let photos = album(30);
    account.upload_all(&photos[..20]).await;
    account.wait_for_photos(5).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    proxy.intercept(move |target, _| {
        target.starts_with("AmazonSQS").then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            (503, String::new())
        })
    });
    account.upload_all(&photos[20..]).await;
    sleep(outage).await;
    assert!(refused.load(Ordering::Relaxed) > 0, "the worker sent no request to the queue");
    proxy.intercept(|_, _| None);
    assert_complete(&account, &photos).await;
}

async fn all_services_are_down() {
    let (account, proxy, _worker) = worker_behind_proxy().await;
    let photos = album(30);
    account.upload_all(&photos[..20]).await;
    account.wait_for_photos(5).await;
    proxy.set_down(true);
    account.upload_all(&photos[20..]).await;
    sleep(Duration::from_secs(10)).await;
    proxy.set_down(false);
    assert_complete(&account, &photos).await;
}

/// Runs all outages at the same time, because they mostly wait.
async fn check_outages(outage: Duration) {
    tokio::join!(
        half_of_the_table_requests_are_throttled(outage),
        all_commits_are_throttled(outage),
        the_queue_is_down(outage),
        all_services_are_down(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn outages_and_throttling_lose_no_message() {
    check_outages(Duration::from_secs(20)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes two minutes; run by the scheduled workflow"]
async fn outages_of_a_minute_lose_no_message() {
    check_outages(Duration::from_secs(60)).await;
}

/// Answers the first `count` requests whose target starts with this with status 500. The SDK sends a request three times.
fn fail_requests(proxy: &Proxy, prefix: String, count: usize) {
    let failures = AtomicUsize::new(count);
    proxy.intercept(move |target, _| {
        let fails = target.starts_with(&prefix)
            && failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        fails.then(|| (500, String::new()))
    });
}

/// Each failure is logged with the word that an operator searches for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_has_the_words_that_operators_search_for() {
    let (account, proxy, worker) = worker_behind_proxy().await;
    let photos = album(3);
    let logged = async |words: &str| {
        eventually(words, async || worker.log().contains(words)).await;
    };
    proxy.intercept(|target, body| (target == COMMIT).then(|| throttled_response(target, body)));
    account.upload_all(&photos[..1]).await;
    logged("throttled").await;

    fail_requests(&proxy, format!("PUT /photos/processed/{}_large", image_of(&photos[1])), 3);
    account.upload_all(&photos[1..2]).await;
    logged("failed: will retry").await;

    fail_requests(&proxy, "AmazonSQS.DeleteMessage".to_owned(), 6);
    account.upload_all(&photos[2..]).await;
    logged("visibility timeout").await;

    proxy.intercept(|_, _| None);
    assert_complete(&account, &photos).await;
    std::fs::write(account.path("message.json"), "{}").unwrap();
    account.text(["send", "message.json"]);
    logged("moved to the dead letters").await;
}
