//! Dead letters of each cause, and their replay once the cause is removed.

use std::{collections::BTreeMap, thread::sleep, time::Duration};

use serde_json::Value;

use crate::harness::{Platform, created, delete, s3};

fn by_cause(platform: &Platform) -> BTreeMap<String, usize> {
    let mut causes = BTreeMap::new();
    for letter in platform.dead_letters() {
        *causes.entry(letter["cause"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    causes
}

/// Creates ten dead letters about photos without a row, and one of each other cause. Returns the ten image IDs.
fn with_dead_letters() -> (Platform, Vec<String>) {
    let platform = Platform::new(12, 3);
    let images: Vec<String> = (0..10).map(Platform::image).collect();
    for (n, image) in images.iter().enumerate() {
        platform.put(&format!("originals/{image}.jpg"), &platform.photo(n));
    }
    let mut messages: Vec<String> = images.iter().map(|image| created(image)).collect();
    messages.push("{".into());
    messages.push(s3("ObjectCreated:Put", "originals/../secret.jpg", "01"));
    messages.push(created(&Platform::image(11)).replace("sparks-photos", "theirs"));
    let foreign = platform.upload(11);
    messages.push(delete(&foreign).replace("ada@", "eve@"));
    platform.put_image(&Platform::image(10));
    messages.push(created(&Platform::image(10)));
    platform.send(&messages);
    let output = platform
        .command(["run", "--drain", "--listen", "127.0.0.1:0"])
        .env("SPARKS_QUEUE_PREREQUISITE_TIMEOUT_SECONDS", "0")
        .output();
    assert!(output.unwrap().status.success());
    (platform, images)
}

#[test]
fn replay_by_cause_leaves_the_other_causes() {
    let (platform, images) = with_dead_letters();
    let causes = by_cause(&platform);
    let expected = [
        ("bad-key", 1),
        ("malformed", 1),
        ("no-image-row", 10),
        ("no-object", 1),
        ("not-theirs", 1),
        ("other-bucket", 1),
    ];
    assert_eq!(causes, expected.map(|(cause, many)| (cause.to_owned(), many)).into());
    let table = platform.sparks.text(["dlq", "ls", "--by", "reason"]);
    assert!(table.contains("no-image-row") && table.contains("10"), "{table}");

    let dry = platform.sparks.text(["dlq", "replay", "--reason", "no-image-row", "--dry-run"]);
    assert!(dry.contains("10"), "{dry}");
    assert_eq!((by_cause(&platform), platform.unsettled()), (causes.clone(), 0));

    for image in &images {
        platform.put_image(image);
    }
    platform.sparks.text(["dlq", "replay", "--reason", "no-image-row"]);
    assert_eq!(platform.unsettled(), 10, "only the selected ones");
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 10);
    assert_eq!(by_cause(&platform).get("no-image-row"), None);
    assert_eq!(by_cause(&platform).len(), 5, "the others stay dead letters");
}

#[test]
fn a_replay_that_is_killed_and_repeated_loses_nothing() {
    let (platform, images) = with_dead_letters();
    for image in &images {
        platform.put_image(image);
    }
    let replay = ["dlq", "replay", "--reason", "no-image-row", "--rate", "10/s"];
    let mut process = platform.command(replay).spawn().unwrap();
    sleep(Duration::from_millis(450));
    process.kill().unwrap();
    process.wait().unwrap();
    let left = by_cause(&platform).get("no-image-row").copied().unwrap_or_default();
    println!("{left} dead letters left at the kill");
    assert!(left > 0 && left < 10, "the kill came too early or too late: {left}");
    assert_eq!(platform.unsettled() as usize + left, 10, "each is a dead letter or a message");

    platform.sparks.text(["dlq", "replay", "--reason", "no-image-row"]);
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 10);
    let processed: std::collections::HashSet<Value> = platform
        .sparks
        .events_of("PhotoProcessed")
        .iter()
        .map(|event| event["event_data"]["image_id"].clone())
        .collect();
    assert_eq!(processed.len(), 10);
}

#[test]
fn a_dead_letter_is_shown_replayed_and_dropped_by_image_or_id() {
    let (platform, images) = with_dead_letters();
    let shown = platform.dead_letters();
    let id = shown.iter().find(|letter| letter["body"].as_str().unwrap().contains(&images[3])).unwrap()["id"]
        .as_str()
        .unwrap();
    let text = platform.sparks.text(["dlq", "show", id]);
    assert!(text.contains(&images[3]) && text.contains("no-image-row"), "{text}");
    let listed = platform.sparks.text(["dlq", "ls", "--image", &images[3]]);
    assert!(listed.contains(id) && !listed.contains("malformed"), "{listed}");
    platform.put_image(&images[3]);
    let output = platform.command(["dlq", "replay", "--image", &images[3]]).output().unwrap();
    assert!(output.status.success());
    platform.drain();
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1);

    platform.sparks.text(["dlq", "drop", "--reason", "malformed"]);
    assert_eq!(by_cause(&platform).get("malformed"), None);
    assert_eq!(by_cause(&platform).values().sum::<usize>(), 13);
    let refused = platform.sparks.run(["dlq", "replay", "999999999999"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("999999999999"));
    assert_eq!(platform.sparks.run(["dlq", "drop"]).status.code(), Some(2), "dropping all needs --all");
}
