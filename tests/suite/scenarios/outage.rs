//! Something the worker depends on is down for a while.

use std::{fs, thread::sleep, time::Duration};

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
