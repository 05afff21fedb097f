//! Photos of more persons than one transaction may contain, and a worker that is killed between the transactions.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use sparks_tests::{
    album::{Photo, photo},
    proxy::Proxy,
    samples::uploader,
    worker::image_of,
};

use super::account::{Account, RunningWorker, row};

const PERSONS: usize = 150;
/// The attribute of a photo's state while rows have still to be written.
const PENDING: &str = "pending";

/// The number of transactions before the kill: the commit, and one more.
const TRANSACTIONS: [usize; 2] = [1, 2];

/// Starts a worker, makes the request, and kills the worker after this many transactions about the photo.
async fn kill_between_transactions(account: &Account, photo: &Photo, transactions: usize, request: impl AsyncFnOnce()) {
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let (image, written) = (image_of(photo).to_string(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&written);
    proxy.intercept(move |target, body| {
        let is_about_photo = target.ends_with(".TransactWriteItems") && String::from_utf8_lossy(body).contains(&image);
        let is_late = is_about_photo && count.fetch_add(1, Ordering::Relaxed) >= transactions;
        is_late.then(|| (503, String::new()))
    });
    let worker = RunningWorker::start(account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    request().await;
    let started = Instant::now();
    while written.load(Ordering::Relaxed) <= transactions {
        assert!(started.elapsed() < Duration::from_secs(60), "{transactions} transactions are enough");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(worker);
}

fn rows<'a>(items: &'a [Value], entity: &'a str) -> impl Iterator<Item = &'a Value> {
    items.iter().filter(move |item| item["entityType"].as_str().is_some_and(|kind| kind.starts_with(entity)))
}

fn taggings(items: &[Value], photo: &Photo) -> usize {
    rows(items, "TAGGING#").filter(|row| row["PK"] == *image_of(photo).as_str()).count()
}

/// Returns the attribute names of the photo's state.
async fn state(account: &Account, photo: &Photo) -> BTreeSet<String> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let get = account.emulator.connect().await.dynamodb().get_item().table_name("sparks-events");
    let get = get.key("PK", text(&format!("IMG#{}", image_of(photo)))).key("SK", text("STATE"));
    get.send().await.unwrap().item.unwrap().into_keys().collect()
}

async fn assert_complete(account: &Account, photo: &Photo) {
    account.text(["run", "--drain"]);
    let items = account.items();
    assert_eq!(rows(&items, "PERSON").count(), PERSONS);
    assert_eq!(taggings(&items, photo), PERSONS);
    let row = rows(&items, "IMAGE").find(|row| row["PK"] == *image_of(photo).as_str()).unwrap();
    assert_eq!(row["persons"].as_array().map(Vec::len), Some(PERSONS));
    assert!(!state(account, photo).await.contains(PENDING), "rows are still pending");
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}

fn all_identities() -> Vec<usize> {
    (0..PERSONS).collect()
}

async fn account() -> Account {
    Account::new(&[("SPARKS_QUEUE_VISIBILITY_TIMEOUT_SECONDS", "5"), ("SPARKS_AWS_POLL_SECONDS", "1")]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_150_known_persons_is_completed_after_a_kill() {
    let account = account().await;
    let albums: Vec<Photo> = (0..).zip(all_identities().chunks(30)).map(|(n, few)| photo(n, few)).collect();
    account.upload_all(&albums).await;
    account.text(["run", "--drain"]);
    for (number, transactions) in (100..).zip(TRANSACTIONS) {
        let group = photo(number, &all_identities());
        kill_between_transactions(&account, &group, transactions, async || {
            account.upload(&row(&group), group.jpeg.clone()).await
        })
        .await;
        assert!(state(&account, &group).await.contains(PENDING), "no rows were pending");
        assert_complete(&account, &group).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_150_new_persons_is_completed_after_a_kill() {
    for transactions in TRANSACTIONS {
        let account = account().await;
        let group = photo(100, &all_identities());
        kill_between_transactions(&account, &group, transactions, async || {
            account.upload(&row(&group), group.jpeg.clone()).await
        })
        .await;
        assert_complete(&account, &group).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deleting_a_photo_of_150_persons_is_completed_after_a_kill() {
    let account = account().await;
    let group = photo(100, &all_identities());
    account.upload(&row(&group), group.jpeg.clone()).await;
    account.text(["run", "--drain"]);
    let message = account.path("delete.json");
    let (image, uploader) = (image_of(&group), uploader());
    let body = json!({ "action": "delete", "imageId": image.as_str(), "uploadedBy": uploader.as_str() });
    std::fs::write(&message, body.to_string()).unwrap();
    kill_between_transactions(&account, &group, 1, async || drop(account.text(["send", message.to_str().unwrap()])))
        .await;
    account.text(["run", "--drain"]);
    let items = account.items();
    assert_eq!(taggings(&items, &group), 0);
    assert_eq!(rows(&items, "PERSON").count(), 0, "persons without photos are forgotten");
    assert_eq!(rows(&items, "IMAGE").count(), 0);
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}
