//! Several worker processes on one queue.

use std::fs::File;

use sparks_domain::Position;
use sparks_engine::Store;
use sparks_tests::{
    album::{Photo, photo},
    platform_actions::original_key,
    snapshot::{count, expected_groups, photo_groups},
};

use super::account::Account;

/// Returns the identities in photo `n`: each identity is in several photos, with another one each time.
fn identities_in(n: u64, identities: usize) -> Vec<usize> {
    let n = n as usize;
    let (one, other) = (n % identities, (n * 7 + n / identities * 3 + 1) % identities);
    if one == other { vec![one] } else { vec![one, other] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_processes_create_one_person_per_identity() {
    check_four_processes(100, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes a minute; run by the scheduled workflow"]
async fn four_processes_create_one_person_per_identity_of_300_photos() {
    check_four_processes(300, 40).await;
}

async fn check_four_processes(photos: u64, identities: usize) {
    let log = ("SPARKS_LOG", "warn,sparks_engine::stages::process=debug");
    let account = Account::new(&[("SPARKS_JOBS", "2"), log, ("SPARKS_LOG_FORMAT", "json")]).await;
    let photos: Vec<Photo> = (0..photos).map(|n| photo(n, &identities_in(n, identities))).collect();
    account.upload_all(&photos).await;
    // One in five is uploaded twice.
    for photo in photos.iter().step_by(5) {
        account.put(&original_key(photo), photo.jpeg.clone()).await;
    }
    // Logs go to files, because a full pipe would block the workers.
    let file = |n: usize| account.path(&format!("worker-{n}.log"));
    let start = |n| account.command(["run", "--drain"]).stderr(File::create(file(n)).unwrap()).spawn().unwrap();
    let workers: Vec<_> = (0..4).map(start).collect();
    let mut conflicts = 0;
    for (n, mut worker) in workers.into_iter().enumerate() {
        let status = tokio::task::spawn_blocking(move || worker.wait().unwrap()).await.unwrap();
        let log = std::fs::read_to_string(file(n)).unwrap();
        assert!(status.success(), "{log}");
        conflicts += log.matches("retrying the decision after a conflict").count();
    }
    let log = account.store.read_log(&Position::default(), 10_000).await.unwrap();
    assert_eq!(count(&log, "PhotoProcessed"), photos.len());
    assert_eq!(photo_groups(&log), expected_groups(&photos), "each identity is one person");
    let persons = account.items().iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons, identities);
    assert!(conflicts > 0, "no commit conflict: the processes did not overlap");
    println!("{conflicts} commit conflicts");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!(rebuilt["before"], rebuilt["after"]);
}
