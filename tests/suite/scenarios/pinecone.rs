//! Persons known by a Pinecone index.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    platform::{ADA, Platform, created, delete, eventually},
    services::{Pinecone, check_outage, check_outcome, faces_and_founded, four_workers},
};

fn count(calls: &BTreeMap<String, u64>, operation: &str) -> u64 {
    calls.get(operation).copied().unwrap_or_default()
}

#[test]
fn four_workers_make_one_person_of_each_stranger_whom_the_index_finds_late() {
    let pinecone = Pinecone::start();
    pinecone.server.set_lag(Duration::from_secs(2));
    let platform = Platform::new(300, 40).with(pinecone.settings());
    let _workers = four_workers(&platform);
    check_outcome(&platform, 40);
    let (calls, (faces, founded)) = (pinecone.take_calls(), faces_and_founded(&platform));
    println!("300 photos, {faces} faces, {founded} persons: {calls:?}");
    assert_eq!(founded, 40);
    assert!(count(&calls, "query") <= faces);
    assert!(calls.values().sum::<u64>() <= 300 + faces + founded, "{calls:?}");

    // The same bytes again cost nothing.
    platform.send(&(0..300).step_by(7).map(|n| created(&Platform::image(n))).collect::<Vec<_>>());
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(pinecone.take_calls(), BTreeMap::new());
}

#[test]
fn a_kill_before_the_index_was_told_is_made_good_once() {
    let pinecone = Pinecone::start();
    let more = vec![("SPARKS_QUEUE_VISIBILITY_SECONDS", "2".to_owned())];
    let platform = Platform::new(3, 1).with(pinecone.settings().into_iter().chain(more).collect());
    platform.send(&[created(&platform.upload(0))]);
    // Answers take so long that the kill comes between the commit and the upsert.
    pinecone.server.set_latency(Duration::from_millis(1500));
    let worker = platform.worker(&[]);
    eventually("committed", || !platform.sparks.events_of("PhotoProcessed").is_empty());
    drop(worker);
    pinecone.server.set_latency(Duration::ZERO);

    let _worker = platform.worker(&[]);
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    let namespaces = pinecone.server.namespaces();
    assert_eq!(namespaces.len(), 1, "{namespaces:?}");
    assert_eq!(pinecone.server.ids(&namespaces[0]), [format!("person1#{}#0", Platform::image(0))], "searchable, once");

    platform.send(&[created(&platform.upload(1))]);
    eventually("all are settled", || platform.unsettled() == 0);
    assert_eq!(platform.persons_in(&Platform::image(1)), ["person1"]);
}

#[test]
fn what_is_deleted_is_gone_from_the_index() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(8, 3).with(pinecone.settings());
    platform.send(&(0..8).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    platform.put_limit(ADA, 10);
    platform.send(&(0..7).map(|n| delete(&Platform::image(n))).collect::<Vec<_>>());
    platform.drain();
    let namespace = pinecone.server.namespaces().remove(0);
    let (kept, left) = (pinecone.server.ids(&namespace), Platform::image(7));
    assert!(!kept.is_empty() && kept.iter().all(|id| id.contains(&left)), "{kept:?}");
    platform.send(&[delete(&left)]);
    platform.drain();
    assert_eq!(pinecone.server.ids(&namespace), [""; 0]);
}

#[test]
fn whoever_was_known_before_there_was_an_index_is_not_founded_again() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(30, 6);
    platform.send(&(0..15).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    let platform = platform.with(pinecone.settings());
    platform.send(&(15..30).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    platform.drain();
    check_outcome(&platform, 6);
}

#[test]
fn while_the_index_is_down_nobody_polls() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(40, 5).with(pinecone.settings());
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    pinecone.server.set_down(true);
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || pinecone.server.set_down(false));
    check_outcome(&platform, 5);
}

#[test]
fn while_the_index_is_throttled_nothing_becomes_a_dead_letter() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(40, 5).with(pinecone.settings());
    let images: Vec<String> = (0..40).map(|n| platform.upload(n)).collect();
    let worker = platform.worker(&[]);
    pinecone.server.throttle(usize::MAX, Some("1"));
    platform.send(&images[..2].iter().map(|image| created(image)).collect::<Vec<_>>());
    check_outage(&platform, &worker, &images[2..], || pinecone.server.throttle(0, None));
    check_outcome(&platform, 5);
}

#[test]
fn the_key_is_in_no_log_and_its_absence_is_said() {
    let pinecone = Pinecone::start();
    let platform = Platform::new(4, 2).with(pinecone.settings());
    platform.send(&(0..4).map(|n| created(&platform.upload(n))).collect::<Vec<_>>());
    let mut verbose = platform.command(["run", "--drain", "--listen", "127.0.0.1:0"]);
    let output = verbose.env("SPARKS_LOG", "trace").output().unwrap();
    assert!(output.status.success());
    let key = sparks_tests::pinecone::PineconeServer::KEY;
    assert!(!String::from_utf8_lossy(&output.stderr).contains(key) && output.stderr.len() > 1000);
    let shown = platform.command(["config", "show"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&shown.stdout).contains(key));

    let without = platform.command(["run", "--drain"]).env_remove("PINECONE_API_KEY").output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("set PINECONE_API_KEY"));
}

#[test]
fn pairs_that_make_no_sense_are_refused_with_a_reason() {
    let platform = Platform::new(1, 1);
    for (analyzer, index, reason) in [
        ("rekognition", "gallery", "Rekognition tells nobody what the faces look like"),
        ("rekognition", "pinecone", "Rekognition tells nobody what the faces look like"),
        ("off", "pinecone", "nobody looks for faces"),
        ("off", "rekognition", "nobody looks for faces"),
        ("local", "pinecone", "pinecone.host is empty"),
    ] {
        let mut command = platform.command(["run", "--drain"]);
        let output = command.env("SPARKS_FACES_ANALYZER", analyzer).env("SPARKS_FACES_INDEX", index).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{analyzer} {index}: {said}");
        assert!(said.contains(reason), "{analyzer} {index}: {said}");
    }
}
