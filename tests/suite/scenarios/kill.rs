//! `kill -9`, and what is left afterwards.

use std::{thread::sleep, time::Duration};

use crate::{sparks::Sparks, truth::wrong_tags};

#[test]
fn twenty_kills_leave_no_trace() {
    let (clean, killed) = (Sparks::new(), Sparks::new());
    let album = clean.synth(240, 30, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    clean.json(&ingest[..4]);

    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..20 {
        let mut process = killed.start(ingest);
        sleep(Duration::from_millis(random.u64(20..250)));
        assert!(process.try_wait().unwrap().is_none(), "the album is too small: done before kill {kill}");
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let finish = killed.json(&ingest[..4]);
    assert_eq!((&finish["failed"], &finish["rejected"]), (&serde_json::json!([]), &serde_json::json!([])), "{finish}");
    assert_eq!(killed.items_without_times(), clean.items_without_times());
    assert_eq!(killed.events_of("PhotoProcessed").len(), 240);
    assert_eq!(wrong_tags(&album, &killed), 0);
    assert_eq!(killed.json(["verify"])["clean"], true);
    killed.assert_crops();
}

#[test]
fn a_crop_that_could_not_be_stored_appears_when_it_can() {
    let sparks = Sparks::new();
    let album = sparks.synth(1, 1, &[]);
    // A folder stands where the crop belongs: the commit goes through, the effect after it cannot.
    let crop = sparks.data().join("objects/persons/person1.jpg");
    std::fs::create_dir_all(crop.join("in the way")).unwrap();
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    let mut process = sparks.start(ingest);
    while !sparks.data().join("sparks.db").is_file() || sparks.run(["events", "--json"]).stdout.is_empty() {
        assert!(process.try_wait().unwrap().is_none(), "it gave up before the commit");
        sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(sparks.events_of("PhotoProcessed").len(), 1, "committed, and then killed");

    std::fs::remove_dir_all(&crop).unwrap();
    let summary = sparks.json(&ingest[..4]);
    assert_eq!(summary["failed"], serde_json::json!([]));
    assert_eq!(sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    sparks.assert_crops();
    assert!(std::fs::metadata(crop).unwrap().len() > 500, "a picture");
}
