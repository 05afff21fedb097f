//! More persons in one photo than one transaction has room for, and a worker that is killed in the middle of them.

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

use super::account::{Account, Running, row};

const PERSONS: usize = 150;
/// The mark on a photo of which rows are still to be written.
const PENDING: &str = "pending";

/// How many writes about the group are done before the worker dies: its commit, and some of what follows.
const SURVIVED: [usize; 2] = [1, 2];

/// Lets a worker begin with what is asked for, and kills it between its commit and the rest.
async fn die_in_the_middle(account: &Account, photo: &Photo, survived: usize, ask: impl AsyncFnOnce()) {
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    let (image, written) = (image_of(photo).to_string(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&written);
    proxy.judge(move |target, body| {
        let is_ours = target.ends_with(".TransactWriteItems") && String::from_utf8_lossy(body).contains(&image);
        let is_late = is_ours && count.fetch_add(1, Ordering::Relaxed) >= survived;
        is_late.then(|| (503, String::new()))
    });
    let worker = Running::start(account, [("SPARKS_AWS_ENDPOINT", proxy.endpoint())]);
    ask().await;
    let started = Instant::now();
    while written.load(Ordering::Relaxed) <= survived {
        assert!(started.elapsed() < Duration::from_secs(60), "one transaction is enough");
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

/// What the log's row about the photo speaks of.
async fn state(account: &Account, photo: &Photo) -> BTreeSet<String> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let get = account.emulator.connect().await.dynamodb().get_item().table_name("sparks-events");
    let get = get.key("PK", text(&format!("IMG#{}", image_of(photo)))).key("SK", text("STATE"));
    get.send().await.unwrap().item.unwrap().into_keys().collect()
}

async fn is_complete(account: &Account, photo: &Photo) {
    account.text(["run", "--drain"]);
    let items = account.items();
    assert_eq!(rows(&items, "PERSON").count(), PERSONS);
    assert_eq!(taggings(&items, photo), PERSONS);
    let row = rows(&items, "IMAGE").find(|row| row["PK"] == *image_of(photo).as_str()).unwrap();
    assert_eq!(row["persons"].as_array().map(Vec::len), Some(PERSONS));
    assert!(!state(account, photo).await.contains(PENDING), "something is left to do");
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}

fn everybody() -> Vec<usize> {
    (0..PERSONS).collect()
}

async fn account() -> Account {
    Account::new(&[("SPARKS_QUEUE_VISIBILITY_SECONDS", "5"), ("SPARKS_AWS_POLL_SECONDS", "1")]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_and_fifty_known_persons_survive_a_kill_in_the_middle() {
    let account = account().await;
    let albums: Vec<Photo> = (0..).zip(everybody().chunks(30)).map(|(n, few)| photo(n, few)).collect();
    account.upload_all(&albums).await;
    account.text(["run", "--drain"]);
    for (number, survived) in (100..).zip(SURVIVED) {
        let group = photo(number, &everybody());
        die_in_the_middle(&account, &group, survived, async || account.upload(&row(&group), group.jpeg.clone()).await)
            .await;
        assert!(state(&account, &group).await.contains(PENDING), "nothing was left to do");
        is_complete(&account, &group).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_and_fifty_strangers_survive_a_kill_in_the_middle() {
    for survived in SURVIVED {
        let account = account().await;
        let group = photo(100, &everybody());
        die_in_the_middle(&account, &group, survived, async || account.upload(&row(&group), group.jpeg.clone()).await)
            .await;
        is_complete(&account, &group).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_of_a_hundred_and_fifty_is_deleted_whole_though_a_worker_dies_of_it() {
    let account = account().await;
    let group = photo(100, &everybody());
    account.upload(&row(&group), group.jpeg.clone()).await;
    account.text(["run", "--drain"]);
    let wish = account.path("delete.json");
    let (image, uploader) = (image_of(&group), uploader());
    let body = json!({ "action": "delete", "imageId": image.as_str(), "uploadedBy": uploader.as_str() });
    std::fs::write(&wish, body.to_string()).unwrap();
    die_in_the_middle(&account, &group, 1, async || drop(account.text(["send", wish.to_str().unwrap()]))).await;
    account.text(["run", "--drain"]);
    let items = account.items();
    assert_eq!(taggings(&items, &group), 0);
    assert_eq!(rows(&items, "PERSON").count(), 0, "whoever is in no photo any more is forgotten");
    assert_eq!(rows(&items, "IMAGE").count(), 0);
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}
