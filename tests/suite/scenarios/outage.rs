//! Outages of what the worker depends on in a data folder: objects, disk space, the file of published events.

use std::{fs, io::Write, thread::sleep, time::Duration};

use crate::harness::{Platform, created, eventually, within};

/// Asserts that the log has all these words, which operators search for.
fn assert_logged(log: &str, words: &[&str]) {
    for word in words {
        assert!(log.contains(word), "the log does not contain `{word}`:\n{log}");
    }
}

#[test]
fn no_message_is_received_or_lost_while_objects_are_unavailable() {
    let platform = Platform::new(40, 5);
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let (here, away) = (platform.sparks.data().join("objects"), platform.sparks.data().join("objects.away"));
    platform.send(&images[..10].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("processing has begun", || platform.sparks.count("log") > 0);
    fs::rename(&here, &away).unwrap();
    platform.send(&images[10..].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the circuit breaker opens", || worker.metric("sparks_breaker_open") == 1.0);
    assert_eq!(worker.get("/readyz").0, 503);
    assert_eq!(worker.get("/healthz").0, 200, "healthy, but not ready");
    assert!(worker.get("/readyz").1.contains("objects"), "{}", worker.get("/readyz").1);

    let waiting = platform.unsettled();
    sleep(Duration::from_secs(4));
    assert_eq!(platform.unsettled(), waiting, "no message is received");
    assert!(!here.exists(), "the folder is not created again");
    assert_eq!(platform.dead_letters().len(), 0);
    let attempts = "SELECT max(receives) FROM messages";
    let attempts: i64 = platform.sparks.database().query_row(attempts, [], |row| row.get(0)).unwrap();
    assert!(attempts <= 1, "the outage counts no attempts: {attempts}");

    fs::rename(&away, &here).unwrap();
    within(Duration::from_secs(10), "the worker is ready again", &mut || worker.get("/readyz").0 == 200);
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_logged(&worker.log(), &["unavailable", "stopped receiving messages", "dependencies recovered"]);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 40);
    assert_eq!(platform.dead_letters().len(), 0);
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
}

#[test]
fn a_full_disk_is_reported_and_processing_resumes_with_free_space() {
    let platform = Platform::new(24, 4);
    let worker = platform.worker_on_a_disk(24);
    let disk = worker.disk(&platform);
    let committed = || worker.metric("sparks_photos_total{outcome=\"committed\"}");
    for n in 0..4 {
        fs::write(disk.join(format!("inbox/{n}.jpg")), platform.photo(n)).unwrap();
    }
    eventually("the first are processed", || committed() == 4.0);

    for n in 4..24 {
        fs::write(disk.join(format!("inbox/{n}.jpg")), platform.photo(n)).unwrap();
    }
    let mut ballast = fs::File::create(disk.join("ballast")).unwrap();
    while ballast.write_all(&[1; 4096]).is_ok() {}
    eventually("the full disk is reported", || worker.get("/readyz").0 == 503);
    let (_, reason) = worker.get("/readyz");
    assert!(reason.contains("No space left") || reason.contains("full"), "{reason}");
    sleep(Duration::from_secs(3));
    assert_eq!(worker.get("/readyz").0, 503, "as long as the disk is full");

    fs::remove_file(disk.join("ballast")).unwrap();
    drop(ballast);
    eventually("all are processed", || committed() == 24.0);
    eventually("all are moved to done", || fs::read_dir(disk.join("inbox/done")).unwrap().count() == 24);
    assert_eq!(worker.metric("sparks_dead_letters"), 0.0);
    assert_eq!(worker.metric("sparks_messages_total{settlement=\"dead\"}"), 0.0);
}

#[test]
fn no_message_becomes_a_dead_letter_while_publishing_fails() {
    let platform = Platform::new(5, 2);
    let images: Vec<String> = (0..5).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let published = platform.sparks.data().join("published.jsonl");
    let _ = fs::remove_file(&published);
    fs::create_dir(&published).unwrap();
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the circuit breaker opens", || worker.metric("sparks_breaker_open") == 1.0);
    sleep(Duration::from_secs(3));
    assert_eq!(platform.dead_letters().len(), 0);
    fs::remove_dir(&published).unwrap();
    eventually("all messages are settled", || platform.unsettled() == 0);
    assert_eq!((platform.sparks.events_of("PhotoProcessed").len(), platform.dead_letters().len()), (5, 0));
}
