//! A permission that is missing stops the work, and costs no message.

use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sparks_domain::{Key, Position};
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    platform::original,
    proxy::{Proxy, denied},
    samples::uploader,
    snapshot::count,
    worker::image_of,
};

use super::account::Account;

/// What a worker says that may not do something.
const LACKING: &str = "we lack a permission";

/// One failed attempt would be the last.
const IMPATIENT: [(&str, &str); 3] =
    [("SPARKS_QUEUE_MAX_RECEIVES", "1"), ("SPARKS_QUEUE_VISIBILITY_SECONDS", "5"), ("SPARKS_AWS_POLL_SECONDS", "1")];

fn row(photo: &Photo) -> Value {
    let Key { pk, sk } = Key::image(&image_of(photo), &uploader());
    json!({ "PK": pk, "SK": sk, "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original(photo), "tags": [] })
}

/// A worker behind a proxy, that ends with the test.
struct Running {
    process: Child,
    log: std::path::PathBuf,
}

impl Running {
    fn start(account: &Account, proxy: &Proxy) -> Self {
        let log = account.path("worker.log");
        let mut command = account.command(["run"]);
        command.env("SPARKS_AWS_ENDPOINT", proxy.endpoint()).env("SPARKS_LOG_FORMAT", "json");
        let process = command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null()).spawn().unwrap();
        Self { process, log }
    }

    /// How often it has said all of this on one line.
    fn said(&self, words: &[&str]) -> usize {
        let log = fs::read_to_string(&self.log).unwrap();
        log.lines().filter(|line| words.iter().all(|words| line.contains(words))).count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_secs(120), "not within two minutes: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn processed(account: &Account) -> usize {
    count(&account.store.read_log(&Position::default(), 1000).await.unwrap(), "PhotoProcessed")
}

/// Photos come, the worker is refused these parts of its work twice; then all is granted.
async fn check(parts: &'static [&'static str], action: &'static str) {
    let account = Account::new(&IMPATIENT).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    proxy.judge(move |target, _| parts.iter().any(|part| target.starts_with(part)).then(|| denied(target, action)));
    let photos: Vec<Photo> = (0..4).map(|n| photo(n, &[n as usize])).collect();
    for photo in &photos {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    let worker = Running::start(&account, &proxy);
    until("refused twice", async || worker.said(&[LACKING]) >= 2).await;
    let named = worker.said(&[LACKING, action, "sparks doctor"]);
    assert!(named >= 2, "{named} lines name action and remedy");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"), "{parts:?}");
    proxy.judge(|_, _| None);
    until("all photos are processed", async || processed(&account).await == photos.len()).await;
    until("messages are worked off again", async || worker.said(&["messages are worked off again"]) > 0).await;
    drop(worker);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"), "{parts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_is_not_allowed_costs_no_message() {
    check(&["DynamoDB_20120810.TransactWriteItems"], "dynamodb:UpdateItem").await;
}

/// What is refused cannot even be given back: it comes again when its lease has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_queue_that_takes_nothing_back_loses_no_message() {
    check(&["DynamoDB_20120810.TransactWriteItems", "AmazonSQS.SendMessage"], "dynamodb:UpdateItem").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pictures_that_may_not_be_stored_cost_no_message() {
    check(&["PUT /photos/processed/"], "s3:PutObject").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_queue_that_is_not_ours_to_read_costs_no_message() {
    check(&["AmazonSQS.ReceiveMessage"], "sqs:ReceiveMessage").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_closed_object_is_a_letter_and_holds_up_nobody() {
    let account = Account::new(&IMPATIENT).await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let photos: Vec<Photo> = (0..3).map(|n| photo(n, &[n as usize])).collect();
    let closed = format!("/photos/{}", original(&photos[0]));
    proxy.judge(move |target, _| target.ends_with(&closed).then(|| denied(target, "s3:GetObject")));
    for photo in &photos {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    let worker = Running::start(&account, &proxy);
    until("the others are processed", async || processed(&account).await == 2).await;
    let letters = || account.lines(["dlq", "ls", "--json"]);
    until("the closed one is a letter", async || !letters().is_empty()).await;
    let letters = letters();
    assert_eq!((letters.len(), letters[0]["cause"].as_str()), (1, Some("forbidden-object")), "{letters:#?}");
    assert_eq!(worker.said(&[LACKING]), 0);
}
