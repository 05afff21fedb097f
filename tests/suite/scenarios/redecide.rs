//! `sparks redecide`: photos are decided again with another threshold or another analyzer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    ground_truth::{truth, wrong_tags},
    sparks::{Sparks, root},
};

const SYNTHETIC: [&str; 3] = ["redecide", "--faces", "synthetic"];

/// Ingests a synthetic album of photos with one face each of six identities, without consolidation.
fn ingest(photos: usize, album: &[&str], threshold: Option<&str>) -> (Sparks, PathBuf) {
    let sparks = Sparks::new();
    let folder = sparks.synth(photos, 6, &[album, &["--faces-per-photo", "1"]].concat());
    let mut command = sparks.command(["ingest", folder.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    command.env("SPARKS_FACES_CONSOLIDATION", "suggest");
    if let Some(threshold) = threshold {
        command.env("SPARKS_FACES_THRESHOLD", threshold);
    }
    run(&mut command);
    (sparks, folder)
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn dry_run(sparks: &Sparks, more: &[&str]) -> Value {
    sparks.json(SYNTHETIC.iter().chain(more))
}

/// Returns the digest of every file in the data folder, except the empty lock files of processes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("owners") {
            files.extend(contents(&path));
        } else if path.is_file() {
            files.insert(path.clone(), format!("{:x?}", Sha256::digest(fs::read(path).unwrap())));
        }
    }
    files
}

/// Renames a person, as the platform does.
fn rename(sparks: &Sparks, person: &str, name: &str) {
    let sql = "UPDATE items SET item = json_set(item, '$.displayName', ?) WHERE PK = ?";
    assert_eq!(sparks.database().execute(sql, [name, &format!("PERSON#{person}")]).unwrap(), 1);
}

fn name_of(sparks: &Sparks, person: &str) -> Value {
    sparks.json(["query", "person", person])["displayName"].clone()
}

fn assert_consistent(sparks: &Sparks) {
    assert_eq!(sparks.json(["verify"])["clean"], true);
    let rebuilt = sparks.json(["rebuild"]);
    assert_eq!((&rebuilt["changed"], &rebuilt["before"]), (&json!(0), &rebuilt["after"]));
    sparks.assert_crops();
}

/// Returns the identity in each photo, by image ID.
fn identities(sparks: &Sparks, album: &Path) -> BTreeMap<String, u64> {
    let truth = truth(album);
    let identity = |event: &Value| {
        let file = event["event_data"]["source"]["file_name"].as_str().unwrap();
        let image = event["event_data"]["image_id"].as_str().unwrap().to_owned();
        truth[file].iter().next().map(|identity| (image, *identity))
    };
    sparks.events_of("PhotoProcessed").iter().filter_map(identity).collect()
}

#[test]
fn the_same_threshold_changes_nothing_and_a_dry_run_writes_nothing() {
    let sparks = Sparks::new();
    let album = sparks.synth(30, 5, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    let before = contents(&sparks.data());
    let report = dry_run(&sparks, &["--dry-run"]);
    assert_eq!(
        (&report["photos"], &report["photos_changed"], &report["dry_run"]),
        (&json!(30), &json!(0), &json!(true))
    );
    assert_eq!((&report["agreement"], &report["agreement_with_kept"]), (&json!(1.0), &json!(1.0)));
    assert_eq!((&report["differences"], &report["merges"], &report["splits"]), (&json!([]), &json!([]), &json!([])));
    let faces: u64 = report["persons"].as_array().unwrap().iter().map(|person| person["faces"].as_u64().unwrap()).sum();
    assert_eq!((&report["faces_both"], &report["outcomes"]["same"]), (&json!(faces), &json!(faces)));
    let other = dry_run(&sparks, &["--threshold", "0.01"]);
    assert!(other["photos_changed"].as_u64().unwrap() > 0, "{other}");
    assert_eq!(contents(&sparks.data()), before, "nothing is written");
    let text = sparks.text(SYNTHETIC);
    assert!(text.contains("100.0% of identified faces unchanged") && text.contains("no changes"), "{text}");
}

/// Each identity is split into several persons, which a lower threshold matches.
#[test]
fn a_lower_threshold_predicts_and_applies_merges() {
    let (sparks, album) = ingest(60, &["--noise", "1.1"], None);
    let identities = identities(&sparks, &album);
    let split_persons = sparks.json(["query", "persons"])["persons"].as_array().unwrap().len();
    assert!(split_persons > 30, "{split_persons}");

    let report = dry_run(&sparks, &["--threshold", "0.35"]);
    // Every face is assigned to the first person of its identity in the order of the log.
    let mut first: BTreeMap<u64, Value> = BTreeMap::new();
    let mut of_identity: BTreeMap<String, u64> = BTreeMap::new();
    for event in sparks.events_of("PhotoProcessed") {
        let image = event["event_data"]["image_id"].as_str().unwrap();
        let verdict = &event["event_data"]["faces"][0]["verdict"];
        let person = verdict.get("founded").or(verdict.get("matched")).expect("an identified face").clone();
        of_identity.insert(person.as_str().unwrap().to_owned(), identities[image]);
        first.entry(identities[image]).or_insert(person);
    }
    for difference in report["differences"].as_array().unwrap() {
        let identity = identities[difference["image_id"].as_str().unwrap()];
        assert_eq!((&difference["what"], &difference["is"]), (&json!("other"), &first[&identity]), "{difference}");
        assert!(difference["similarity"].as_f64() >= difference["threshold"].as_f64(), "{difference}");
    }
    let merges = report["merges"].as_array().unwrap();
    let decided: Vec<&Value> = merges.iter().filter(|merge| merge["evidence"] == "decided").collect();
    assert_eq!(decided.len(), split_persons - 6, "{report}");
    for merge in decided {
        let [into, from] = [&merge["into"], &merge["from"]].map(|person| of_identity[person.as_str().unwrap()]);
        assert_eq!(into, from, "{merge}");
    }

    // A renamed person keeps the name, even one whose faces are all assigned to another person.
    let (keeps, loses) = (first[&0].as_str().unwrap(), report["in_no_photo"][0].as_str().unwrap());
    rename(&sparks, keeps, "Ann");
    rename(&sparks, loses, "Bob");
    let apply = ["--threshold", "0.35", "--apply"];
    let done = dry_run(&sparks, &apply);
    assert_eq!((&done["photos_changed"], &done["differences"]), (&report["photos_changed"], &report["differences"]));
    assert_eq!((&done["left_over"], &done["dry_run"]), (&json!([loses]), &json!(false)));
    assert_eq!(wrong_tags(&album, &sparks), 0);
    assert_eq!([name_of(&sparks, keeps), name_of(&sparks, loses)], ["Ann", "Bob"]);
    assert_eq!(sparks.json(["query", "persons"])["persons"].as_array().unwrap().len(), 7, "six, and the renamed one");
    assert_consistent(&sparks);
    let events = sparks.events().len();
    assert_eq!(dry_run(&sparks, &apply)["photos_changed"], 0);
    assert_eq!(sparks.events().len(), events, "applying twice changes nothing");
    sparks.json(["persons", "merge", keeps, loses, "--force"]);
    assert_consistent(&sparks);
}

/// Several identities were matched to one person, which a higher threshold separates.
#[test]
fn a_higher_threshold_splits_persons_and_keeps_their_names() {
    let (sparks, album) = ingest(60, &[], Some("0.01"));
    let identities = identities(&sparks, &album);
    let mut of_person: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (image, identity) in &identities {
        for row in sparks.json(["query", "photo", image])["persons"].as_array().unwrap() {
            of_person.entry(row.as_str().unwrap().to_owned()).or_default().insert(*identity);
        }
    }
    let several: Vec<&String> = of_person.iter().filter(|(_, of)| of.len() > 1).map(|(person, _)| person).collect();
    assert!(!several.is_empty(), "no identities were confused: {of_person:?}");
    let report = dry_run(&sparks, &[]);
    let splits: Vec<&str> =
        report["splits"].as_array().unwrap().iter().map(|s| s["person"].as_str().unwrap()).collect();
    assert_eq!(splits, several, "{report}");
    let kept = report["outcomes"]["kept"].as_u64().unwrap();
    assert!(kept > 0 && report["agreement"].as_f64() < report["agreement_with_kept"].as_f64(), "{report}");
    let text = sparks.text(SYNTHETIC);
    assert!(text.contains("split into several"), "{text}");

    let persons = sparks.json(["query", "persons"]);
    let done = dry_run(&sparks, &["--apply"]);
    assert_eq!(done["differences"], report["differences"]);
    assert_consistent(&sparks);
    let stay: BTreeSet<&str> = of_person.keys().map(String::as_str).collect();
    let after = sparks.json(["query", "persons"]);
    let left = |report: &Value| report["persons"].as_array().unwrap().len();
    assert!(left(&after) <= left(&persons) && left(&persons) == stay.len(), "no new persons: {after}");
    assert_eq!(dry_run(&sparks, &["--apply"])["photos_changed"], 0);
}

#[test]
fn kills_give_the_same_rows_as_none() {
    let (clean, album) = ingest(60, &["--noise", "1.1"], None);
    let killed = Sparks::new();
    let copy = Command::new("cp").arg("-r").arg(clean.data()).arg(killed.data()).status().unwrap();
    assert!(copy.success());
    let apply = ["redecide", "--faces", "synthetic", "--threshold", "0.35", "--apply", "--jobs", "1"];
    clean.json(apply);
    let events = || killed.database().query_row("SELECT count(*) FROM log", [], |row| row.get::<_, u32>(0)).unwrap();
    for kill in 0..5 {
        let before = events();
        let mut process = killed.start(apply);
        // The log is appended to while photos are decided, and once more when persons are forgotten.
        while events() < before + 7 {
            assert!(process.try_wait().unwrap().is_none(), "finished before kill {kill}");
            sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        process.wait().unwrap();
    }
    // Two processes at once finish the rest.
    let mut both = [killed.start(apply), killed.start(apply)];
    for process in &mut both {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(killed.items_without_times(), clean.items_without_times());
    assert_eq!(wrong_tags(&album, &killed), 0);
    assert_consistent(&killed);
    assert_eq!(killed.json(apply)["photos_changed"], 0);
}

/// Another process ingests photos with new persons at the same time.
#[test]
fn photos_ingested_meanwhile_are_redecided_too() {
    let (sparks, album) = ingest(60, &["--noise", "1.1"], None);
    fs::rename(&album, sparks.path("before")).unwrap();
    let more = sparks.synth(40, 20, &["--seed", "7"]);
    let apply = ["redecide", "--faces", "synthetic", "--threshold", "0.35", "--apply"];
    let mut ingest = sparks.command(["ingest", more.to_str().unwrap(), "--faces", "synthetic"]);
    ingest.env("SPARKS_FACES_CONSOLIDATION", "suggest").env("SPARKS_FACES_THRESHOLD", "0.35");
    let (mut ingest, mut redecide) = (ingest.stdout(Stdio::null()).spawn().unwrap(), sparks.start(apply));
    assert!(redecide.wait().unwrap().success() && ingest.wait().unwrap().success());
    assert_eq!(sparks.json(["verify"])["clean"], true);
    let photos = sparks.json(apply)["photos"].clone();
    assert_eq!(photos, 100, "including those ingested meanwhile");
    assert_consistent(&sparks);
    assert_eq!(sparks.json(apply)["photos_changed"], 0);
}

/// One engine identified all persons; another one replaces it and matches all of them.
#[test]
fn another_engine_keeps_all_persons_and_names() {
    let sparks = Sparks::new();
    let photo = |name: &str| root().join("tests/photos").join(name).to_str().unwrap().to_owned();
    let (one, two, biden) = (photo("obama-1.jpg"), photo("obama-2.jpg"), photo("biden.jpg"));
    let mut ingest = sparks.command(["ingest", &one, &two, &biden, "--jobs", "1"]);
    run(ingest.env("SPARKS_FACES_MODELS", "dlib"));
    rename(&sparks, "person1", "Barack");
    rename(&sparks, "person2", "Joe");
    let report = sparks.json(["redecide", "--faces", "local"]);
    assert_eq!((&report["agreement"], &report["photos_changed"]), (&json!(1.0), &json!(3)), "{report}");
    let events = sparks.events().len();
    assert_eq!(sparks.json(["redecide", "--faces", "local", "--apply"])["photos_changed"], 3);
    assert_eq!(sparks.events().len(), events + 3, "one event per photo, and no new persons");
    assert_eq!([name_of(&sparks, "person1"), name_of(&sparks, "person2")], ["Barack", "Joe"]);
    assert_consistent(&sparks);
    let summary = sparks.json(["ingest", &photo("obama-3.jpg")]);
    assert_eq!((&summary["persons_new"], &summary["persons_known"]), (&json!(0), &json!(1)), "{summary}");
    assert_eq!(sparks.json(["query", "photos-of", "person1"])["images"].as_array().unwrap().len(), 3);
    // The first engine still knows all persons and can replace the second one again.
    let back = run(sparks.command(["redecide", "--apply", "--json"]).env("SPARKS_FACES_MODELS", "dlib"));
    let back: Value = serde_json::from_slice(&back).unwrap();
    assert_eq!((&back["agreement"], &back["photos_changed"]), (&json!(1.0), &json!(4)), "{back}");
    assert_consistent(&sparks);
}

#[test]
fn unreadable_photos_are_reported_and_stay_unchanged() {
    let (sparks, _) = ingest(12, &[], None);
    let images: Vec<Value> = sparks
        .events_of("PhotoProcessed")
        .iter()
        .take(2)
        .map(|event| event["event_data"]["image_id"].clone())
        .collect();
    let large = |image: &Value| sparks.data().join(format!("objects/processed/{}_large.webp", image.as_str().unwrap()));
    fs::remove_file(large(&images[0])).unwrap();
    fs::write(large(&images[1]), "not an image").unwrap();
    let report = dry_run(&sparks, &["--apply"]);
    let unreadable: Vec<&Value> =
        report["photos_unreadable"].as_array().unwrap().iter().map(|photo| &photo["image_id"]).collect();
    assert_eq!(unreadable, images.iter().collect::<Vec<_>>(), "{report}");
    assert_eq!((&report["photos"], &report["outcomes"]["lost"]), (&json!(10), &json!(0)));
    assert_eq!(sparks.json(["verify"])["clean"], true);
    for image in &images {
        let persons = &sparks.json(["query", "photo", image.as_str().unwrap()])["persons"];
        assert_eq!(persons.as_array().unwrap().len(), 1);
    }
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_the_remedy() {
    let (sparks, _) = ingest(4, &[], None);
    for (args, expected) in [
        (vec!["--faces", "off"], "choose an analyzer with --faces"),
        (vec!["--threshold", "1.5"], "faces.threshold"),
        (vec!["--apply", "--dry-run"], "cannot be used with"),
        (vec!["--faces", "rekognition", "--apply"], "4 DetectFaces, 4 SearchFacesByImage"),
    ] {
        let output = sparks.run(["redecide"].iter().chain(&args));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
    }
    assert_eq!(Sparks::new().run(["redecide"]).status.code(), Some(2), "no data folder");
}
