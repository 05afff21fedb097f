//! A photo that is put into a bucket ends as the same rows as in a data folder.

use std::{path::Path, process::Command};

use serde_json::Value;
use sparks_engine::Objects;
use sparks_tests::binary::binary;

use super::account::{Account, without_times};

/// An album that was taken in on one machine: the rows of its photos as they ended, in the order they were taken in.
struct Album {
    items: Vec<Value>,
    photos: Vec<(Value, Vec<u8>)>,
}

impl Album {
    fn taken_in(folder: &Path, photos: usize, identities: usize) -> Self {
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
        let mut taken = Vec::new();
        for event in sparks(&["events", "--json"]).iter().filter(|event| event["event_type"] == "PhotoProcessed") {
            let image = &event["event_data"]["image_id"];
            let row = items.iter().find(|item| item["imageId"] == *image).unwrap();
            let original = data.join("objects").join(row["s3Key"].as_str().unwrap());
            taken.push((row.clone(), std::fs::read(original).unwrap()));
        }
        Self { items: without_times(items), photos: taken }
    }
}

async fn works_as_in_a_folder(settings: &[(&str, &str)]) -> Account {
    let account = Account::new(settings).await;
    let album = Album::taken_in(&account.path("."), 8, 3);
    for (row, bytes) in &album.photos {
        account.upload(row, bytes.clone()).await;
    }
    account.text(["run", "--drain"]);
    assert_eq!(account.items(), album.items);
    account
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_that_tells_the_queue_itself() {
    let account = works_as_in_a_folder(&[]).await;
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
async fn a_bucket_that_tells_a_topic_that_tells_the_queue() {
    works_as_in_a_folder(&[("SPARKS_AWS_UPLOADS_TOPIC", "uploads")]).await;
}
