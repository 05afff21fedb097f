//! The local face engine, on photos of people.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    peak_memory::run_and_measure,
    sparks::{Sparks, root},
};

/// Returns a folder of data that is too large for the repository: in `SPARKS_TEST_DATA`, or beside the repository.
fn data(name: &str) -> PathBuf {
    let folder = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let found = folder.join(name);
    assert!(found.is_dir(), "{} does not exist; set SPARKS_TEST_DATA to the folder that holds {name}", found.display());
    found
}

#[test]
fn five_photos_are_three_persons() {
    let sparks = Sparks::new();
    let summary = sparks.json(["ingest", root().join("tests/photos").to_str().unwrap()]);
    assert_eq!((&summary["photos"], &summary["processed"], &summary["faces"]), (&json!(5), &json!(5), &json!(5)));
    assert_eq!(summary["persons_new"], 3, "{summary}");
    let persons = sparks.json(["query", "persons"]);
    assert_eq!(persons["persons"].as_array().unwrap().len(), 3);

    let name_of = |image: &Value| {
        let events = sparks.events_of("PhotoProcessed");
        let event = events.iter().find(|event| event["event_data"]["image_id"] == *image).unwrap();
        event["event_data"]["source"]["file_name"].as_str().unwrap().to_owned()
    };
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    for person in persons["persons"].as_array().unwrap() {
        let photos = sparks.json(["query", "photos-of", person["personId"].as_str().unwrap()]);
        groups.push(photos["images"].as_array().unwrap().iter().map(|photo| name_of(&photo["imageId"])).collect());
    }
    groups.sort();
    let expected = [&["biden.jpg"][..], &["collins.png"], &["obama-1.jpg", "obama-2.jpg", "obama-3.jpg"]];
    assert_eq!(groups, expected.map(|names| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>()));
    sparks.assert_crops();
    assert_eq!(sparks.json(["verify"])["clean"], true);

    // The same folder again: no new persons, and nothing changes.
    let items = sparks.text(["items"]);
    let again = sparks.json(["ingest", root().join("tests/photos").to_str().unwrap()]);
    assert_eq!((&again["duplicates"], &again["persons_new"]), (&json!(5), &json!(0)));
    assert_eq!(sparks.text(["items"]), items);
}

#[test]
fn models_lists_the_licence_of_each_model() {
    let sparks = Sparks::new();
    let models: Vec<Value> =
        sparks.text(["models", "--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: BTreeSet<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert!(names.contains("centerface") && names.contains("mobilefacenet"), "{names:?}");
    for model in &models {
        for key in ["purpose", "licence", "origin"] {
            assert!(model[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {model}");
        }
        assert!(model["bytes"].as_u64().unwrap() > 100_000, "{model}");
        assert_eq!(model["sha256"].as_str().unwrap().len(), 64, "{model}");
    }
    let table = sparks.text(["models"]);
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    assert!(!sparks.data().exists(), "models needs no data folder");
}

/// Copies the photos of the repository, into one folder per person.
fn copy_labelled_photos(folder: &Path) {
    for (person, photo) in [
        ("biden", "biden.jpg"),
        ("collins", "collins.png"),
        ("obama", "obama-1.jpg"),
        ("obama", "obama-2.jpg"),
        ("obama", "obama-3.jpg"),
    ] {
        fs::create_dir_all(folder.join(person)).unwrap();
        fs::copy(root().join("tests/photos").join(photo), folder.join(person).join(photo)).unwrap();
    }
}

#[test]
fn an_evaluation_measures_and_writes_nothing() {
    let sparks = Sparks::new();
    copy_labelled_photos(&sparks.path("labelled"));
    let report = sparks.json(["faces", "eval", "labelled"]);
    for (key, value) in [("precision", 1.0), ("recall", 1.0), ("persons_made", 3.0), ("detection_rate", 1.0)] {
        assert_eq!(report[key].as_f64(), Some(value), "{key}: {report}");
    }
    assert_eq!(report["persons_true"], 3);
    assert_eq!(report["orders"].as_array().unwrap().len(), 5);
    assert_eq!(report["unreadable"], json!([]));
    assert!(!sparks.data().exists(), "nothing is written");
    assert_eq!(sparks.json(["faces", "eval", "labelled", "--orders", "2"])["orders"].as_array().unwrap().len(), 2);
    let text = sparks.text(["faces", "eval", "labelled"]);
    assert!(text.starts_with("5 photos of 3 persons"), "{text}");
}

#[test]
fn an_evaluation_names_the_folder_layout_it_expects() {
    let sparks = Sparks::new();
    fs::create_dir_all(sparks.path("one/person")).unwrap();
    fs::copy(root().join("tests/photos/biden.jpg"), sparks.path("one/person/a.jpg")).unwrap();
    for folder in ["one", "missing"] {
        let output = sparks.run(["faces", "eval", folder]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{folder}: {text}");
        assert!(text.contains(folder), "{text}");
    }
    let output = sparks.run(["faces", "eval", "one"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("one folder of photos for each of at least two persons"));
}

#[test]
#[ignore = "takes two minutes and needs a large data set; run it after changes of the face engine"]
fn ten_persons_are_distinguished() {
    let folder = data("faces/lfw10");
    let report = Sparks::new().json(["faces", "eval", folder.to_str().unwrap()]);
    let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("{key} in {report}"));
    println!("precision {}, recall {}, {} persons", number("precision"), number("recall"), number("persons_made"));
    assert_eq!((number("detection_rate"), number("persons_true")), (1.0, 10.0), "{report}");
    assert!(number("precision") >= 0.995, "{report}");
    assert!(number("recall") >= 0.97, "{report}");
    assert!((10.0..=11.0).contains(&number("persons_made")), "{report}");
}

#[test]
#[ignore = "needs the large data set and takes a minute; run it after changes of the image processor"]
fn camera_photos_need_little_memory() {
    let folder = data("photos");
    let sparks = Sparks::new();
    let command = sparks.command(["ingest", folder.to_str().unwrap(), "--jobs", "2", "--json"]);
    let (peak, output) = run_and_measure(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["processed"].as_u64().unwrap() >= 10, "{summary}");
    println!("{} MB at most", peak >> 20);
    assert!(peak > 10 << 20 && peak < 450_000_000, "{peak} bytes at most");
}
