//! Several processes on one data folder.

use serde_json::Value;

use crate::{
    sparks::Sparks,
    truth::{tags, wrong_tags},
};

#[test]
fn four_processes_make_one_person_of_each_stranger() {
    let sparks = Sparks::new();
    let album = sparks.synth(200, 25, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    let processes: Vec<_> = (0..4).map(|_| sparks.start(ingest)).collect();
    let mut conflicts = 0;
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["photos"], 200);
        assert_eq!(summary["processed"].as_u64().unwrap() + summary["duplicates"].as_u64().unwrap(), 200);
        conflicts += summary["conflicts"].as_u64().unwrap();
    }
    println!("commit conflicts met on the way: {conflicts}");
    assert!(conflicts > 0, "four processes never met");
    assert_eq!(sparks.events_of("PhotoProcessed").len(), 200);
    assert_eq!(sparks.json(["query", "persons"])["persons"].as_array().unwrap().len(), 25);
    assert_eq!(wrong_tags(&album, &sparks), 0);
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
}

#[test]
fn noise_that_overlaps_makes_mistakes() {
    let sparks = Sparks::new();
    let album = sparks.synth(60, 10, &["--noise", "1.2"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    // Some of them may have been joined since.
    let allocated = sparks.events_of("PersonsAllocated");
    let founded: usize = allocated.iter().map(|event| event["event_data"]["persons"].as_array().unwrap().len()).sum();
    assert!(founded > 10, "identities that reach the decision as vectors cannot survive this noise: {founded} persons");
    assert_eq!(tags(&sparks).len(), 60);
    assert_eq!(sparks.json(["verify"])["clean"], true, "mistaken, but consistent");
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let (one, many) = (Sparks::new(), Sparks::new());
    let album = one.synth(40, 12, &[]);
    one.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    many.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "6"]);
    assert_eq!(one.items_without_times(), many.items_without_times());
}
