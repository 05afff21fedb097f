//! `sparks log level` on a data folder, and what `sparks doctor` says about it.

use std::fs::File;

use crate::{
    harness::{Platform, created, eventually},
    sparks::Sparks,
};

/// Registers a process of a release without levels, which leaves its lock file empty.
fn earlier_release(sparks: &Sparks) -> File {
    let lock = File::create(sparks.data().join("owners").join("4242-1")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn the_level_is_shown_raised_and_kept() {
    let platform = Platform::new(4, 2);
    let images: Vec<String> = (0..4).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    platform.send(&[created(&images[0]), created(&images[1])]);
    eventually("the first photos are processed", || platform.unsettled() == 0);
    let sparks = &platform.sparks;

    let shown = sparks.json(["log", "level"]);
    assert_eq!((&shown["level"], &shown["reads"]), (&1.into(), &2.into()), "{shown}");
    let workers = shown["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 1, "the running worker, without this command: {shown}");
    assert_eq!(workers[0]["host"], format!("process {}", worker.process.id()));
    assert_eq!((&workers[0]["level"], &workers[0]["too_old"]), (&2.into(), &false.into()));
    let text = sparks.text(["log", "level"]);
    assert!(text.starts_with("the log has level 1; this version of sparks reads and writes levels 1 to 2\n"), "{text}");

    for (level, reason) in [("3", "level 3 is not known"), ("0", "cannot be lowered to 0")] {
        let output = sparks.run(["log", "level", level]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(reason), "{error}");
    }
    assert_eq!(sparks.text(["log", "level", "2"]), "raised the level of the log from 1 to 2\n");
    assert_eq!(sparks.text(["log", "level", "2"]), "the log has level 2 already\n");
    let lowered = sparks.run(["log", "level", "1"]);
    assert_eq!(lowered.status.code(), Some(2), "{}", String::from_utf8_lossy(&lowered.stderr));
    assert_eq!(sparks.json(["log", "level"])["level"], 2);

    platform.send(&[created(&images[2]), created(&images[3])]);
    eventually("photos are processed after the raise", || platform.unsettled() == 0);
    assert_eq!(worker.get("/readyz").0, 200);
    assert_eq!((sparks.events_of("LevelRaised").len(), sparks.events_of("PhotoProcessed").len()), (1, 4));
    assert_eq!(platform.dead_letters().len(), 0);
    assert_eq!(sparks.json(["verify"])["clean"], true);
}

#[test]
fn a_worker_that_is_too_old_keeps_the_operator_from_raising_the_level() {
    let platform = Platform::new(1, 1);
    let sparks = &platform.sparks;
    let doctor = || {
        let output = platform.command(["doctor"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(doctor().contains("ok    reader level of the event log: level 1; no worker is too old"), "{}", doctor());

    let lock = earlier_release(sparks);
    let warned = doctor();
    let line = warned.lines().find(|line| line.contains("reader level")).unwrap();
    assert!(line.starts_with("warn") && line.contains("process 4242 (before 0.2.0)"), "{line}");
    assert!(line.contains("-> upgrade these workers, then run `sparks log level 2`"), "{line}");
    let text = sparks.text(["log", "level"]);
    assert!(text.lines().any(|line| line.contains("process 4242") && line.ends_with("too old for level 2")), "{text}");
    let refused = sparks.run(["log", "level", "2"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && error.contains("process 4242 (before 0.2.0)"), "{error}");
    assert_eq!(sparks.events_of("LevelRaised").len(), 0);

    sparks.text(["log", "level", "2", "--force"]);
    let warned = doctor();
    assert!(warned.contains("the log has level 2, which process 4242 (before 0.2.0) cannot read"), "{warned}");
    drop(lock);
    assert!(doctor().contains("ok    reader level of the event log: level 2"), "{}", doctor());
}

#[test]
fn a_level_of_a_later_release_is_an_outage_that_names_it() {
    let platform = Platform::new(1, 1);
    let image = platform.upload(0);
    let worker = platform.worker(&[]);
    platform.sparks.database().execute("INSERT INTO heads (lane, seq) VALUES ('LEVEL', 3)", []).unwrap();
    platform.send(&[created(&image)]);
    eventually("the worker is not ready", || worker.get("/readyz").0 == 503);
    let (_, reason) = worker.get("/readyz");
    assert!(reason.contains("reader level 3") && reason.contains("upgrade"), "{reason}");
    assert_eq!((platform.unsettled(), platform.dead_letters().len()), (1, 0));
    let doctor = platform.command(["doctor"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("fail  reader level of the event log"));
}
