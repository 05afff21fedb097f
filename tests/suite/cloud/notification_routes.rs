//! Every route of event notifications from the bucket to the queue gives the same rows as a data folder.

use std::{fs::File, path::Path, process::Command};

use serde_json::Value;
use sparks_engine::Objects;
use sparks_tests::binary::binary;

use super::{
    account::{Account, eventually, without_times},
    platform_api::platform,
};

/// An album that was ingested into a data folder: the resulting rows, and the photos in the order of their processing.
struct Album {
    items: Vec<Value>,
    photos: Vec<(Value, Vec<u8>)>,
}

impl Album {
    fn ingest(folder: &Path, photos: usize, identities: usize) -> Self {
        let (album, data) = (folder.join("album"), folder.join("data"));
        let sparks = |args: &[&str]| {
            let mut command = Command::new(binary());
            command.args(args).args(["--data", data.to_str().unwrap()]).current_dir(folder);
            let output =
                command.env("SPARKS_FACES_ANALYZER", "synthetic").env("SPARKS_BUCKET", "photos").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
        };
        let (photos, identities) = (photos.to_string(), identities.to_string());
        sparks(&["synth", album.to_str().unwrap(), "--photos", &photos, "--identities", &identities]);
        sparks(&["ingest", album.to_str().unwrap(), "--jobs", "1"]);
        let items = sparks(&["items"]);
        let mut processed = Vec::new();
        for event in sparks(&["events", "--json"]).iter().filter(|event| event["event_type"] == "PhotoProcessed") {
            let image = &event["event_data"]["image_id"];
            let row = items.iter().find(|item| item["imageId"] == *image).unwrap();
            let original = data.join("objects").join(row["s3Key"].as_str().unwrap());
            processed.push((row.clone(), std::fs::read(original).unwrap()));
        }
        Self { items: without_times(items), photos: processed }
    }
}

/// Uploads an album to the bucket, processes the messages, and compares the rows with those of a data folder.
async fn check_same_rows(account: &Account) {
    let album = Album::ingest(&account.path("."), 8, 3);
    for (row, bytes) in &album.photos {
        account.upload(row, bytes.clone()).await;
    }
    account.text(["run", "--drain"]);
    assert_eq!(account.items(), album.items);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_from_bucket_to_queue() {
    let account = Account::new(&[]).await;
    check_same_rows(&account).await;
    let verified = account.lines(["verify", "--json"]).remove(0);
    assert_eq!((&verified["clean"], &verified["photos_gone"]), (&true.into(), &0.into()), "{verified}");
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!(rebuilt["before"], rebuilt["after"]);
    assert_eq!(rebuilt["changed"], 0);
    for person in account.items().iter().filter(|item| item["entityType"] == "PERSON") {
        let crop = person["s3Key"].as_str().unwrap();
        assert!(account.objects.head(crop).await.unwrap().is_some(), "{crop} is missing");
    }
    let image = account.items().into_iter().find(|item| item["entityType"] == "IMAGE").unwrap();
    let explained = account.text(["explain", image["imageId"].as_str().unwrap()]);
    assert!(explained.contains("person"), "{explained}");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_from_bucket_to_topic_to_queue() {
    let account = Account::new(&[("SPARKS_AWS_UPLOADS_TOPIC", "uploads")]).await;
    check_same_rows(&account).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_in_sns_envelopes() {
    let account = Account::new(&[("SPARKS_AWS_UPLOADS_TOPIC", "uploads")]).await;
    let sns = account.emulator.connect().await.sns();
    let subscriptions = sns.list_subscriptions().send().await.unwrap().subscriptions.unwrap();
    let subscription = subscriptions[0].subscription_arn().unwrap();
    let wrap = sns.set_subscription_attributes().subscription_arn(subscription);
    wrap.attribute_name("RawMessageDelivery").attribute_value("false").send().await.unwrap();
    check_same_rows(&account).await;
}

/// The bucket notifies EventBridge, and a rule sends to the queue. `sparks setup` does not create the rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_through_eventbridge_to_a_standard_queue() {
    let account = Account::new(&[]).await;
    assert_eq!(platform(&account, &["bridge", "sparks-work"]).await, 0);
    check_same_rows(&account).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_through_eventbridge_to_a_fifo_queue() {
    let account = Account::new(&[
        ("SPARKS_AWS_QUEUE", "work.fifo"),
        ("SPARKS_AWS_WAITING_QUEUE", "waiting"),
        ("SPARKS_AWS_DEAD_LETTER_QUEUE", "dead.fifo"),
        ("SPARKS_AWS_EVENTS_TOPIC", "events.fifo"),
    ])
    .await;
    assert_eq!(platform(&account, &["bridge", "work.fifo"]).await, 0);
    check_same_rows(&account).await;
}

/// The object is stored before the row is created: the message is deferred and counts no attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_waits_for_its_row() {
    let account = Account::new(&[("SPARKS_QUEUE_MAX_ATTEMPTS", "2")]).await;
    let album = Album::ingest(&account.path("."), 2, 2);
    for (row, bytes) in &album.photos {
        account.put(row["s3Key"].as_str().unwrap(), bytes.clone()).await;
    }
    let log = account.path("worker.log");
    let worker = account.command(["run", "--drain"]).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let deferrals = || std::fs::read_to_string(&log).unwrap().matches("deferred: not available yet").count();
    eventually("both photos are deferred", async || deferrals() >= album.photos.len()).await;
    for (row, _) in &album.photos {
        account.create_row(row).await;
    }
    let output = tokio::task::spawn_blocking(move || worker.wait_with_output().unwrap()).await.unwrap();
    assert!(output.status.success());
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
    let persons = |items: &[Value]| items.iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons(&account.items()), persons(&album.items));
}

/// A malformed message is a dead letter with its cause, and again after a replay.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_malformed_message_is_a_dead_letter_and_can_be_replayed() {
    let account = Account::new(&[]).await;
    std::fs::write(account.path("message.json"), r#"{"neither":"nor"}"#).unwrap();
    account.text(["send", "message.json"]);
    account.text(["run", "--drain"]);
    for _ in 0..2 {
        let dead_letters = account.lines(["dlq", "ls", "--json"]);
        assert_eq!(dead_letters.len(), 1, "{dead_letters:?}");
        assert_eq!(dead_letters[0]["cause"], "malformed");
        account.text(["dlq", "replay", "--reason", "malformed"]);
        assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
        account.text(["run", "--drain"]);
    }
    account.text(["dlq", "drop", "--all"]);
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
}
