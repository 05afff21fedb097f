//! Several processes on one data folder.

use serde_json::Value;

use crate::{
    ground_truth::{tags, wrong_tags},
    sparks::Sparks,
};

#[test]
fn four_processes_create_one_person_per_identity() {
    check_four_processes(80, 15);
}

#[test]
#[ignore = "takes a minute; run by the scheduled workflow"]
fn four_processes_create_one_person_per_identity_of_200_photos() {
    check_four_processes(200, 25);
}

fn check_four_processes(photos: usize, identities: usize) {
    let sparks = Sparks::new();
    let album = sparks.synth(photos, identities, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    let processes: Vec<_> = (0..4).map(|_| sparks.start(ingest)).collect();
    let mut conflicts = 0;
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["photos"], photos);
        assert_eq!(summary["processed"].as_u64().unwrap() + summary["duplicates"].as_u64().unwrap(), photos as u64);
        conflicts += summary["conflicts"].as_u64().unwrap();
    }
    println!("{conflicts} commit conflicts");
    assert!(conflicts > 0, "no commit conflict: the processes did not overlap");
    assert_eq!(sparks.events_of("PhotoProcessed").len(), photos);
    assert_eq!(sparks.json(["query", "persons"])["persons"].as_array().unwrap().len(), identities);
    assert_eq!(wrong_tags(&album, &sparks), 0);
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
}

#[test]
fn faces_with_much_noise_are_misidentified_but_consistent() {
    let sparks = Sparks::new();
    let album = sparks.synth(60, 10, &["--noise", "1.2"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    // Consolidation may have merged some since.
    let allocated = sparks.events_of("PersonsAllocated");
    let new_persons: usize =
        allocated.iter().map(|event| event["event_data"]["persons"].as_array().unwrap().len()).sum();
    assert!(new_persons > 10, "the noise does not reach the identification: {new_persons} persons");
    assert_eq!(tags(&sparks).len(), 60);
    assert_eq!(sparks.json(["verify"])["clean"], true, "misidentified, but consistent");
}

#[test]
fn the_number_of_jobs_does_not_change_the_result() {
    let (one, many) = (Sparks::new(), Sparks::new());
    let album = one.synth(40, 12, &[]);
    one.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    many.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "6"]);
    assert_eq!(one.items_without_times(), many.items_without_times());
}
