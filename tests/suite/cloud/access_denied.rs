//! A missing permission stops receiving and loses no message.

use sparks_tests::{
    album::{Photo, photo},
    platform_actions::original_key,
    proxy::{Proxy, access_denied_response},
};

use super::account::{Account, RunningWorker, eventually};

/// The beginning of the log line about a missing permission.
const DENIED: &str = "access denied: stopped receiving messages";

/// One failed attempt is the last.
const SINGLE_ATTEMPT: [(&str, &str); 3] = [
    ("SPARKS_QUEUE_MAX_ATTEMPTS", "1"),
    ("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "5"),
    ("SPARKS_AWS_POLL_SECONDS", "1"),
];

fn start(account: &Account, proxy: &Proxy) -> RunningWorker {
    let settings = [("SPARKS_AWS_ENDPOINT", proxy.endpoint()), ("SPARKS_LOG_FORMAT", "json".to_owned())];
    RunningWorker::start(account, settings)
}

/// Returns the number of log lines that contain all these texts.
fn count_lines(worker: &RunningWorker, texts: &[&str]) -> usize {
    worker.log().lines().filter(|line| texts.iter().all(|text| line.contains(text))).count()
}

/// Denies requests to these targets until the worker has logged it twice, then grants them.
async fn check(targets: &'static [&'static str], action: &'static str) {
    let account = Account::new(&SINGLE_ATTEMPT).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    proxy.intercept(move |target, _| {
        targets.iter().any(|prefix| target.starts_with(prefix)).then(|| access_denied_response(target, action))
    });
    let photos: Vec<Photo> = (0..4).map(|n| photo(n, &[n as usize])).collect();
    account.upload_all(&photos).await;
    let worker = start(&account, &proxy);
    eventually("access is denied twice", async || count_lines(&worker, &[DENIED]) >= 2).await;
    let named = count_lines(&worker, &[DENIED, action, "sparks doctor"]);
    assert!(named >= 2, "{named} lines name action and remedy");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"), "{targets:?}");
    proxy.intercept(|_, _| None);
    account.wait_for_photos(photos.len()).await;
    let granted = async || count_lines(&worker, &["access granted: messages are processed again"]) > 0;
    eventually("messages are processed again", granted).await;
    drop(worker);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"), "{targets:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_denied_commit_loses_no_message() {
    check(&["DynamoDB_20120810.TransactWriteItems"], "dynamodb:UpdateItem").await;
}

/// The message cannot be released either: it is delivered again after its visibility timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_denied_release_loses_no_message() {
    check(&["DynamoDB_20120810.TransactWriteItems", "AmazonSQS.SendMessage"], "dynamodb:UpdateItem").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_denied_write_of_variants_loses_no_message() {
    check(&["PUT /photos/processed/"], "s3:PutObject").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_denied_receive_loses_no_message() {
    check(&["AmazonSQS.ReceiveMessage"], "sqs:ReceiveMessage").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_forbidden_object_is_a_dead_letter_and_delays_no_other() {
    let account = Account::new(&SINGLE_ATTEMPT).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let photos: Vec<Photo> = (0..3).map(|n| photo(n, &[n as usize])).collect();
    let forbidden = format!("/photos/{}", original_key(&photos[0]));
    proxy.intercept(move |target, _| {
        target.ends_with(&forbidden).then(|| access_denied_response(target, "s3:GetObject"))
    });
    account.upload_all(&photos).await;
    let worker = start(&account, &proxy);
    account.wait_for_photos(2).await;
    let dead_letters = || account.lines(["dlq", "ls", "--json"]);
    eventually("the forbidden one is a dead letter", async || !dead_letters().is_empty()).await;
    let dead_letters = dead_letters();
    let cause = dead_letters[0]["cause"].as_str();
    assert_eq!((dead_letters.len(), cause), (1, Some("forbidden-object")), "{dead_letters:#?}");
    assert_eq!(count_lines(&worker, &[DENIED]), 0);
}
