//! Variants that differ from the event log: `sparks verify --objects` reports them and renders them again.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;

use crate::sparks::Sparks;

fn variants(sparks: &Sparks) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(sparks.data().join("objects/processed")).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn verify_reports_and_repairs_variants_that_differ_from_the_log() {
    let sparks = Sparks::new();
    let album = sparks.synth(4, 2, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let before = variants(&sparks);
    assert_eq!(before.len(), 8);
    assert_eq!(sparks.json(["verify", "--objects"])["objects"]["photos"], 4);

    let paths: Vec<&PathBuf> = before.keys().collect();
    let mut other = before[paths[0]].clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(paths[0], other).unwrap();
    fs::remove_file(paths[3]).unwrap();
    assert_eq!(sparks.json(["verify"])["clean"], true, "the table is unchanged");
    let verified = sparks.run(["verify", "--objects", "--json"]);
    assert_eq!(verified.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&report["clean"], &report["objects"]["differences"]), (&false.into(), &2.into()), "{report}");

    let repaired = sparks.json(["verify", "--objects", "--repair"]);
    assert_eq!(repaired["objects"]["repaired"], 2, "{repaired}");
    assert_eq!(variants(&sparks), before);
    assert_eq!(sparks.json(["verify", "--objects"])["clean"], true);
}

#[test]
fn verify_names_variants_that_cannot_be_rendered_again() {
    let sparks = Sparks::new();
    let album = sparks.synth(1, 1, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    fs::remove_file(variants(&sparks).keys().next().unwrap()).unwrap();
    let original = fs::read_dir(sparks.data().join("objects/originals")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(original).unwrap();
    let verified = sparks.run(["verify", "--objects", "--repair", "--json"]);
    assert_eq!(verified.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    let drift = report["objects"]["drift"].to_string();
    assert!(drift.contains("cannot be rendered again"), "{report}");
}
