//! Photos decided anew: by another measure, or by another engine.

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
    sparks::{Sparks, root},
    truth::{truth, wrong_tags},
};

const SYNTHETIC: [&str; 3] = ["redecide", "--faces", "synthetic"];

/// A synthetic album of photos with one face each, taken in with these settings, where nobody joins anybody.
fn ingested(album: &[&str], threshold: Option<&str>) -> (Sparks, PathBuf) {
    let sparks = Sparks::new();
    let folder = sparks.synth(60, 6, &[album, &["--faces-per-photo", "1"]].concat());
    let mut ingest = sparks.command(["ingest", folder.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    ingest.env("SPARKS_FACES_CONSOLIDATION", "suggest");
    if let Some(threshold) = threshold {
        ingest.env("SPARKS_FACES_THRESHOLD", threshold);
    }
    succeed(&mut ingest);
    (sparks, folder)
}

fn succeed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn dry_run(sparks: &Sparks, more: &[&str]) -> Value {
    sparks.json(SYNTHETIC.iter().chain(more))
}

/// Every file of the data folder and a digest of it. Every process leaves a lock file of its own, which is empty.
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

/// The platform gives somebody a name.
fn rename(sparks: &Sparks, person: &str, name: &str) {
    let sql = "UPDATE items SET item = json_set(item, '$.displayName', ?) WHERE PK = ?";
    assert_eq!(sparks.database().execute(sql, [name, &format!("PERSON#{person}")]).unwrap(), 1);
}

fn name_of(sparks: &Sparks, person: &str) -> Value {
    sparks.json(["query", "person", person])["displayName"].clone()
}

fn assert_sound(sparks: &Sparks) {
    assert_eq!(sparks.json(["verify"])["clean"], true);
    let rebuilt = sparks.json(["rebuild"]);
    assert_eq!((&rebuilt["changed"], &rebuilt["before"]), (&json!(0), &rebuilt["after"]));
    sparks.assert_crops();
}

/// Who is in each photo of one face, by its image ID.
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
fn the_same_measure_says_the_same_and_a_dry_run_writes_nothing() {
    let sparks = Sparks::new();
    let album = sparks.synth(30, 5, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    let before = contents(&sparks.data());
    let said = dry_run(&sparks, &["--dry-run"]);
    assert_eq!((&said["photos"], &said["photos_changed"], &said["dry_run"]), (&json!(30), &json!(0), &json!(true)));
    assert_eq!((&said["agreement"], &said["agreement_with_kept"]), (&json!(1.0), &json!(1.0)));
    assert_eq!((&said["differences"], &said["merges"], &said["splits"]), (&json!([]), &json!([]), &json!([])));
    let faces: u64 = said["persons"].as_array().unwrap().iter().map(|person| person["faces"].as_u64().unwrap()).sum();
    assert_eq!((&said["faces_both"], &said["outcomes"]["same"]), (&json!(faces), &json!(faces)));
    let other = dry_run(&sparks, &["--threshold", "0.01"]);
    assert!(other["photos_changed"].as_u64().unwrap() > 0, "{other}");
    assert_eq!(contents(&sparks.data()), before, "nothing is written, not a byte");
    let words = sparks.text(SYNTHETIC);
    assert!(words.contains("100.0% of known faces the same") && words.contains("nothing changes"), "{words}");
}

/// Everybody is in pieces, and a lower measure sees who is one.
#[test]
fn a_measure_that_joins_predicts_merges_and_makes_them() {
    let (sparks, album) = ingested(&["--noise", "1.1"], None);
    let identities = identities(&sparks, &album);
    let pieces = sparks.json(["query", "persons"])["persons"].as_array().unwrap().len();
    assert!(pieces > 30, "{pieces}");

    let said = dry_run(&sparks, &["--threshold", "0.35"]);
    // Every face goes to the first person of its identity, by the order of the log.
    let mut first: BTreeMap<u64, Value> = BTreeMap::new();
    let mut of_identity: BTreeMap<String, u64> = BTreeMap::new();
    for event in sparks.events_of("PhotoProcessed") {
        let image = event["event_data"]["image_id"].as_str().unwrap();
        let verdict = &event["event_data"]["faces"][0]["verdict"];
        let person = verdict.get("founded").or(verdict.get("matched")).expect("somebody").clone();
        of_identity.insert(person.as_str().unwrap().to_owned(), identities[image]);
        first.entry(identities[image]).or_insert(person);
    }
    for difference in said["differences"].as_array().unwrap() {
        let identity = identities[difference["image_id"].as_str().unwrap()];
        assert_eq!((&difference["what"], &difference["is"]), (&json!("other"), &first[&identity]), "{difference}");
        assert!(difference["similarity"].as_f64() >= difference["threshold"].as_f64(), "{difference}");
    }
    let merges = said["merges"].as_array().unwrap();
    let decided: Vec<&Value> = merges.iter().filter(|merge| merge["evidence"] == "decided").collect();
    assert_eq!(decided.len(), pieces - 6, "{said}");
    for merge in decided {
        let [into, from] = [&merge["into"], &merge["from"]].map(|person| of_identity[person.as_str().unwrap()]);
        assert_eq!(into, from, "{merge}");
    }

    // Somebody whose faces all go to another was given a name: nobody loses it.
    let (keeps, loses) = (first[&0].as_str().unwrap(), said["in_no_photo"][0].as_str().unwrap());
    rename(&sparks, keeps, "Ann");
    rename(&sparks, loses, "Bob");
    let apply = ["--threshold", "0.35", "--apply"];
    let done = dry_run(&sparks, &apply);
    assert_eq!((&done["photos_changed"], &done["differences"]), (&said["photos_changed"], &said["differences"]));
    assert_eq!((&done["left_over"], &done["dry_run"]), (&json!([loses]), &json!(false)));
    assert_eq!(wrong_tags(&album, &sparks), 0);
    assert_eq!([name_of(&sparks, keeps), name_of(&sparks, loses)], ["Ann", "Bob"]);
    assert_eq!(
        sparks.json(["query", "persons"])["persons"].as_array().unwrap().len(),
        7,
        "six, and whoever has a name"
    );
    assert_sound(&sparks);
    let events = sparks.events().len();
    assert_eq!(dry_run(&sparks, &apply)["photos_changed"], 0);
    assert_eq!(sparks.events().len(), events, "a second time changes nothing");
    sparks.json(["persons", "merge", keeps, loses, "--force"]);
    assert_sound(&sparks);
}

/// Strangers were taken for one, and a stricter measure sees that they are several.
#[test]
fn a_measure_that_splits_says_so_and_keeps_names() {
    let (sparks, album) = ingested(&[], Some("0.01"));
    let identities = identities(&sparks, &album);
    let mut of_person: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (image, identity) in &identities {
        for row in sparks.json(["query", "photo", image])["persons"].as_array().unwrap() {
            of_person.entry(row.as_str().unwrap().to_owned()).or_default().insert(*identity);
        }
    }
    let several: Vec<&String> = of_person.iter().filter(|(_, of)| of.len() > 1).map(|(person, _)| person).collect();
    assert!(!several.is_empty(), "strangers are like each other, a little: {of_person:?}");
    let said = dry_run(&sparks, &[]);
    let splits: Vec<&str> = said["splits"].as_array().unwrap().iter().map(|s| s["person"].as_str().unwrap()).collect();
    assert_eq!(splits, several, "{said}");
    let kept = said["outcomes"]["kept"].as_u64().unwrap();
    assert!(kept > 0 && said["agreement"].as_f64() < said["agreement_with_kept"].as_f64(), "{said}");
    let words = sparks.text(SYNTHETIC);
    assert!(words.contains("taken for several"), "{words}");

    let persons = sparks.json(["query", "persons"]);
    let done = dry_run(&sparks, &["--apply"]);
    assert_eq!(done["differences"], said["differences"]);
    assert_sound(&sparks);
    let stay: BTreeSet<&str> = of_person.keys().map(String::as_str).collect();
    let after = sparks.json(["query", "persons"]);
    let left = |said: &Value| said["persons"].as_array().unwrap().len();
    assert!(left(&after) <= left(&persons) && left(&persons) == stay.len(), "nobody is new: {after}");
    assert_eq!(dry_run(&sparks, &["--apply"])["photos_changed"], 0);
}

#[test]
fn kills_in_the_middle_leave_no_trace() {
    let (clean, album) = ingested(&["--noise", "1.1"], None);
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
            assert!(process.try_wait().unwrap().is_none(), "done before kill {kill}");
            sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        process.wait().unwrap();
    }
    // Two at once do what is left.
    let mut both = [killed.start(apply), killed.start(apply)];
    for process in &mut both {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(killed.items_without_times(), clean.items_without_times());
    assert_eq!(wrong_tags(&album, &killed), 0);
    assert_sound(&killed);
    assert_eq!(killed.json(apply)["photos_changed"], 0);
}

/// Others take photos in meanwhile, and found persons.
#[test]
fn photos_may_come_in_meanwhile() {
    let (sparks, album) = ingested(&["--noise", "1.1"], None);
    fs::rename(&album, sparks.path("before")).unwrap();
    let more = sparks.synth(40, 20, &["--seed", "7"]);
    let apply = ["redecide", "--faces", "synthetic", "--threshold", "0.35", "--apply"];
    let mut ingest = sparks.command(["ingest", more.to_str().unwrap(), "--faces", "synthetic"]);
    ingest.env("SPARKS_FACES_CONSOLIDATION", "suggest").env("SPARKS_FACES_THRESHOLD", "0.35");
    let (mut ingest, mut redecide) = (ingest.stdout(Stdio::null()).spawn().unwrap(), sparks.start(apply));
    assert!(redecide.wait().unwrap().success() && ingest.wait().unwrap().success());
    assert_eq!(sparks.json(["verify"])["clean"], true);
    let photos = sparks.json(apply)["photos"].clone();
    assert_eq!(photos, 100, "those that came in, too");
    assert_sound(&sparks);
    assert_eq!(sparks.json(apply)["photos_changed"], 0);
}

/// One engine has decided; another takes over, and goes on with everybody.
#[test]
fn another_engine_takes_over_with_all_names() {
    let sparks = Sparks::new();
    let photo = |name: &str| root().join("tests/photos").join(name).to_str().unwrap().to_owned();
    let (one, two, biden) = (photo("obama-1.jpg"), photo("obama-2.jpg"), photo("biden.jpg"));
    let mut ingest = sparks.command(["ingest", &one, &two, &biden, "--jobs", "1"]);
    succeed(ingest.env("SPARKS_FACES_MODELS", "dlib"));
    rename(&sparks, "person1", "Barack");
    rename(&sparks, "person2", "Joe");
    let said = sparks.json(["redecide", "--faces", "local"]);
    assert_eq!((&said["agreement"], &said["photos_changed"]), (&json!(1.0), &json!(3)), "{said}");
    let events = sparks.events().len();
    assert_eq!(sparks.json(["redecide", "--faces", "local", "--apply"])["photos_changed"], 3);
    assert_eq!(sparks.events().len(), events + 3, "an event a photo, and nobody is new");
    assert_eq!([name_of(&sparks, "person1"), name_of(&sparks, "person2")], ["Barack", "Joe"]);
    assert_sound(&sparks);
    let summary = sparks.json(["ingest", &photo("obama-3.jpg")]);
    assert_eq!((&summary["persons_new"], &summary["persons_known"]), (&json!(0), &json!(1)), "{summary}");
    assert_eq!(sparks.json(["query", "photos-of", "person1"])["images"].as_array().unwrap().len(), 3);
    // The engine from before still knows everybody, and may take over again.
    let back = succeed(sparks.command(["redecide", "--apply", "--json"]).env("SPARKS_FACES_MODELS", "dlib"));
    let back: Value = serde_json::from_slice(&back).unwrap();
    assert_eq!((&back["agreement"], &back["photos_changed"]), (&json!(1.0), &json!(4)), "{back}");
    assert_sound(&sparks);
}

#[test]
fn what_cannot_be_looked_at_is_named_and_stays_as_it_is() {
    let (sparks, _) = ingested(&[], None);
    let images: Vec<Value> = sparks
        .events_of("PhotoProcessed")
        .iter()
        .take(2)
        .map(|event| event["event_data"]["image_id"].clone())
        .collect();
    let large = |image: &Value| sparks.data().join(format!("objects/processed/{}_large.webp", image.as_str().unwrap()));
    fs::remove_file(large(&images[0])).unwrap();
    fs::write(large(&images[1]), "no picture").unwrap();
    let said = dry_run(&sparks, &["--apply"]);
    let unreadable: Vec<&Value> =
        said["photos_unreadable"].as_array().unwrap().iter().map(|photo| &photo["image_id"]).collect();
    assert_eq!(unreadable, images.iter().collect::<Vec<_>>(), "{said}");
    assert_eq!((&said["photos"], &said["outcomes"]["lost"]), (&json!(58), &json!(0)));
    assert_eq!(sparks.json(["verify"])["clean"], true);
    for image in &images {
        let persons = &sparks.json(["query", "photo", image.as_str().unwrap()])["persons"];
        assert_eq!(persons.as_array().unwrap().len(), 1);
    }
}

#[test]
fn what_cannot_be_meant_is_exit_code_2() {
    let (sparks, _) = ingested(&[], None);
    for (args, words) in [
        (vec!["--faces", "off"], "nobody would look"),
        (vec!["--threshold", "1.5"], "faces.threshold"),
        (vec!["--apply", "--dry-run"], "cannot be used with"),
        (vec!["--faces", "rekognition", "--apply"], "60 DetectFaces, 60 SearchFacesByImage"),
    ] {
        let output = sparks.run(["redecide"].iter().chain(&args));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
    assert_eq!(Sparks::new().run(["redecide"]).status.code(), Some(2), "no data folder");
}
