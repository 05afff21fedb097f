//! Several worker processes on one queue.

use std::{fs::File, time::Instant};

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
    let photos: Vec<Photo> = (0..100).map(|n| photo(n, &identities_in(n, 20))).collect();
    check_processes(4, 2, &photos, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes a minute; run by the scheduled workflow"]
async fn four_processes_create_one_person_per_identity_of_300_photos() {
    let photos: Vec<Photo> = (0..300).map(|n| photo(n, &identities_in(n, 40))).collect();
    check_processes(4, 2, &photos, 40).await;
}

/// The worst case for the allocation of persons: 200 photos at once, and each shows a person that no other photo shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes minutes; run by the scheduled workflow"]
async fn eight_processes_that_meet_only_new_faces_create_no_second_person() {
    let photos: Vec<Photo> = (0..400).map(|n| photo(n, &[n as usize])).collect();
    check_processes(8, 25, &photos, 400).await;
}

/// Lets processes, each with this many jobs, process the photos, and checks that each identity is one person.
async fn check_processes(processes: usize, jobs: usize, photos: &[Photo], identities: usize) {
    let log = ("SPARKS_LOG", "warn,sparks_engine::stages::process=debug");
    let account = Account::new(&[("SPARKS_JOBS", &jobs.to_string()), log, ("SPARKS_LOG_FORMAT", "json")]).await;
    account.upload_all(photos).await;
    // One in five is uploaded twice.
    for photo in photos.iter().step_by(5) {
        account.put(&original_key(photo), photo.jpeg.clone()).await;
    }
    // Logs go to files, because a full pipe would block the workers.
    let file = |n: usize| account.path(&format!("worker-{n}.log"));
    let start = |n| account.command(["run", "--drain"]).stderr(File::create(file(n)).unwrap()).spawn().unwrap();
    let started = Instant::now();
    let workers: Vec<_> = (0..processes).map(start).collect();
    let mut conflicts = 0;
    for (n, mut worker) in workers.into_iter().enumerate() {
        let status = tokio::task::spawn_blocking(move || worker.wait().unwrap()).await.unwrap();
        let log = std::fs::read_to_string(file(n)).unwrap();
        assert!(status.success(), "{log}");
        conflicts += log.matches("retrying the decision after a conflict").count();
    }
    println!(
        "{} photos of {identities} new persons in {:.0} s by {processes} processes with {jobs} jobs each: \
         {conflicts} commit conflicts, {:.2} per new person",
        photos.len(),
        started.elapsed().as_secs_f64(),
        conflicts as f64 / identities as f64
    );
    let log = account.store.read_log(&Position::default(), 10_000).await.unwrap();
    assert_eq!(count(&log, "PhotoProcessed"), photos.len());
    assert_eq!(photo_groups(&log), expected_groups(photos), "each identity is one person");
    let persons = account.items().iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons, identities);
    assert!(conflicts > 0, "no commit conflict: the processes did not overlap");
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!(rebuilt["before"], rebuilt["after"]);
}
