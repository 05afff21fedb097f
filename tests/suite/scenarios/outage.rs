//! Something the worker depends on is down for a while.

use std::{fs, io::Write, thread::sleep, time::Duration};

use crate::platform::{Platform, created, eventually, within};

#[test]
fn while_the_objects_are_away_nothing_is_taken_and_nothing_is_lost() {
    let platform = Platform::new(40, 5);
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let (here, away) = (platform.sparks.data().join("objects"), platform.sparks.data().join("objects.away"));
    platform.send(&images[..10].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("work has begun", || !platform.sparks.events().is_empty());
    fs::rename(&here, &away).unwrap();
    platform.send(&images[10..].iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the outage is noticed", || worker.metric("sparks_breaker_open") == 1.0);
    assert_eq!(worker.get("/readyz").0, 503);
    assert_eq!(worker.get("/healthz").0, 200, "alive, and waiting");
    assert!(worker.get("/readyz").1.contains("objects"), "{}", worker.get("/readyz").1);

    let waiting = platform.unsettled();
    sleep(Duration::from_secs(8));
    assert_eq!(platform.unsettled(), waiting, "nothing is taken");
    assert!(!here.exists(), "the folder is not made anew");
    assert_eq!(platform.letters().len(), 0);
    let attempts = "SELECT max(receives) FROM messages";
    let attempts: i64 = platform.sparks.database().query_row(attempts, [], |row| row.get(0)).unwrap();
    assert!(attempts <= 1, "the outage spends no attempts: {attempts}");

    fs::rename(&away, &here).unwrap();
    within(Duration::from_secs(10), "the worker is ready again", &mut || worker.get("/readyz").0 == 200);
    eventually("everything is settled", || platform.unsettled() == 0);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 40);
    assert_eq!(platform.letters().len(), 0);
    assert_eq!(platform.sparks.json(["verify"])["clean"], true);
}

#[test]
fn a_full_disk_is_said_clearly_and_work_goes_on_when_there_is_room() {
    let platform = Platform::new(24, 4);
    let worker = platform.worker_on_a_disk(24);
    let disk = worker.disk(&platform);
    let committed = || worker.metric("sparks_photos_total{outcome=\"committed\"}");
    for n in 0..4 {
        fs::write(disk.join(format!("inbox/{n}.jpg")), platform.picture(n)).unwrap();
    }
    eventually("the first are taken", || committed() == 4.0);

    for n in 4..24 {
        fs::write(disk.join(format!("inbox/{n}.jpg")), platform.picture(n)).unwrap();
    }
    let mut ballast = fs::File::create(disk.join("ballast")).unwrap();
    while ballast.write_all(&[1; 4096]).is_ok() {}
    eventually("the full disk is noticed", || worker.get("/readyz").0 == 503);
    let (_, reason) = worker.get("/readyz");
    assert!(reason.contains("No space left") || reason.contains("full"), "{reason}");
    sleep(Duration::from_secs(5));
    assert_eq!(worker.get("/readyz").0, 503, "until there is room");

    fs::remove_file(disk.join("ballast")).unwrap();
    drop(ballast);
    eventually("all are taken", || committed() == 24.0);
    eventually("all are put away", || fs::read_dir(disk.join("inbox/done")).unwrap().count() == 24);
    assert_eq!(worker.metric("sparks_dead_letters"), 0.0);
    assert_eq!(worker.metric("sparks_messages_total{settlement=\"dead\"}"), 0.0);
}

#[test]
fn while_nobody_can_be_told_nothing_becomes_a_dead_letter() {
    let platform = Platform::new(5, 2);
    let images: Vec<String> = (0..5).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    let notices = platform.sparks.data().join("published.jsonl");
    let _ = fs::remove_file(&notices);
    fs::create_dir(&notices).unwrap();
    platform.send(&images.iter().map(|image| created(image)).collect::<Vec<_>>());
    eventually("the outage is noticed", || worker.metric("sparks_breaker_open") == 1.0);
    sleep(Duration::from_secs(3));
    assert_eq!(platform.letters().len(), 0);
    fs::remove_dir(&notices).unwrap();
    eventually("everything is settled", || platform.unsettled() == 0);
    assert_eq!((platform.sparks.events_of("PhotoProcessed").len(), platform.letters().len()), (5, 0));
}
