//! Many processes on one queue.

use std::fs::File;

use sparks_domain::Position;
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    platform::original,
    snapshot::{count, groups, truth},
};

use super::account::Account;

const PHOTOS: u64 = 300;
const IDENTITIES: usize = 40;

/// Everybody is in several photos, with somebody else each time.
fn cast(n: u64) -> Vec<usize> {
    let n = n as usize;
    let (one, other) = (n % IDENTITIES, (n * 7 + n / IDENTITIES * 3 + 1) % IDENTITIES);
    if one == other { vec![one] } else { vec![one, other] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_processes_make_one_person_of_each_stranger() {
    let log = ("SPARKS_LOG", "warn,sparks_engine::stages::commit=debug");
    let account = Account::new(&[("SPARKS_JOBS", "2"), log, ("SPARKS_LOG_FORMAT", "json")]).await;
    let photos: Vec<Photo> = (0..PHOTOS).map(|n| photo(n, &cast(n))).collect();
    account.upload_all(&photos).await;
    // One in five comes twice.
    for photo in photos.iter().step_by(5) {
        account.put(&original(photo), photo.jpeg.clone()).await;
    }
    // What they say goes into files: a pipe that nobody reads would hold them up.
    let file = |n: usize| account.path(&format!("worker-{n}.log"));
    let start = |n| account.command(["run", "--drain"]).stderr(File::create(file(n)).unwrap()).spawn().unwrap();
    let workers: Vec<_> = (0..4).map(start).collect();
    let mut conflicts = 0;
    for (n, mut worker) in workers.into_iter().enumerate() {
        let ended = tokio::task::spawn_blocking(move || worker.wait().unwrap()).await.unwrap();
        let said = std::fs::read_to_string(file(n)).unwrap();
        assert!(ended.success(), "{said}");
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
