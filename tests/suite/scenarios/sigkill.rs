//! Recovery after `kill -9`.

use std::{thread::sleep, time::Duration};

use crate::{ground_truth::wrong_tags, sparks::Sparks};

#[test]
fn six_kills_give_the_same_rows_as_none() {
    check_kills(6, 80, 15);
}

#[test]
#[ignore = "takes a minute; run by the scheduled workflow"]
fn twenty_kills_give_the_same_rows_as_none() {
    check_kills(20, 240, 30);
}

fn check_kills(kills: usize, photos: usize, identities: usize) {
    let (clean, killed) = (Sparks::new(), Sparks::new());
    let album = clean.synth(photos, identities, &[]);
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    clean.json(&ingest[..4]);

    let seed =
        std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..kills {
        let mut process = killed.start(ingest);
        sleep(Duration::from_millis(random.u64(20..250)));
        assert!(process.try_wait().unwrap().is_none(), "the album is too small: finished before kill {kill}");
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let finish = killed.json(&ingest[..4]);
    assert_eq!((&finish["failed"], &finish["rejected"]), (&serde_json::json!([]), &serde_json::json!([])), "{finish}");
    assert_eq!(killed.items_without_times(), clean.items_without_times());
    assert_eq!(killed.events_of("PhotoProcessed").len(), photos);
    assert_eq!(wrong_tags(&album, &killed), 0);
    assert_eq!(killed.json(["verify"])["clean"], true);
    killed.assert_crops();
}

#[test]
fn a_crop_that_could_not_be_stored_is_stored_later() {
    let sparks = Sparks::new();
    let album = sparks.synth(1, 1, &[]);
    // A folder has the name of the crop: the commit succeeds, and storing the crop after it fails.
    let crop = sparks.data().join("objects/persons/person1.jpg");
    std::fs::create_dir_all(crop.join("obstacle")).unwrap();
    let ingest = ["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"];
    let mut process = sparks.start(ingest);
    while !sparks.data().join("sparks.db").is_file() || sparks.run(["events", "--json"]).stdout.is_empty() {
        assert!(process.try_wait().unwrap().is_none(), "ended before the commit");
        sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(sparks.events_of("PhotoProcessed").len(), 1, "committed before the kill");

    std::fs::remove_dir_all(&crop).unwrap();
    let summary = sparks.json(&ingest[..4]);
    assert_eq!(summary["failed"], serde_json::json!([]));
    assert_eq!(sparks.events_of("PhotoProcessed").len(), 1, "not committed again");
    sparks.assert_crops();
    assert!(std::fs::metadata(crop).unwrap().len() > 500, "the crop is an image");
}
