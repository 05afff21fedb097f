//! Many processes on one queue.

use std::process::Stdio;

use serde_json::{Value, json};
use sparks_domain::{Key, Position};
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    platform::original,
    samples::uploader,
    snapshot::{count, groups, truth},
    worker::image_of,
};

use super::account::Account;

const PHOTOS: u64 = 300;
const IDENTITIES: usize = 40;

/// The row that the platform makes of a photo.
fn row(photo: &Photo) -> Value {
    let Key { pk, sk } = Key::image(&image_of(photo), &uploader());
    json!({ "PK": pk, "SK": sk, "entityType": "IMAGE", "imageId": image_of(photo), "s3Key": original(photo), "tags": [] })
}

/// Everybody is in several photos, with somebody else each time.
fn cast(n: u64) -> Vec<usize> {
    let n = n as usize;
    let (one, other) = (n % IDENTITIES, (n * 7 + n / IDENTITIES * 3 + 1) % IDENTITIES);
    if one == other { vec![one] } else { vec![one, other] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_processes_make_one_person_of_each_stranger() {
    let account = Account::new(&[("SPARKS_JOBS", "2"), ("SPARKS_LOG", "debug"), ("SPARKS_LOG_FORMAT", "json")]).await;
    let photos: Vec<Photo> = (0..PHOTOS).map(|n| photo(n, &cast(n))).collect();
    for photo in &photos {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    // One in five comes twice.
    for photo in photos.iter().step_by(5) {
        account.put(&original(photo), photo.jpeg.clone()).await;
    }
    let start = || account.command(["run", "--drain"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let workers: Vec<_> = (0..4).map(|_| start()).collect();
    let mut conflicts = 0;
    for worker in workers {
        let output = tokio::task::spawn_blocking(move || worker.wait_with_output().unwrap()).await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        conflicts += said.matches("deciding again").count();
    }
    let log = account.store.read_log(&Position::default(), 10_000).await.unwrap();
    assert_eq!(count(&log, "PhotoProcessed"), photos.len());
    assert_eq!(groups(&log), truth(&photos), "who is in which photo");
    let persons = account.items().iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons, IDENTITIES);
    assert!(conflicts > 0, "four processes never met");
    println!("conflicts met on the way: {conflicts}");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!(rebuilt["before"], rebuilt["after"]);
}
