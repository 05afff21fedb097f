//! `sparks photo delete`.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::{Value, json};

use crate::sparks::Sparks;

const LIMIT: &str = "LIMIT#me@localhost";

/// Creates a data folder with two persons in three photos each, one per photo. The uploader has an upload limit.
fn album() -> (Sparks, PathBuf) {
    let sparks = Sparks::new();
    let album = sparks.synth(6, 2, &["--faces-per-photo", "1"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    let limit = r#"{"entityType":"DEFAULT_LIMIT","limit":494,"note":"theirs"}"#;
    let insert = "INSERT INTO items (PK, SK, item) VALUES (?, 'me@localhost', ?)";
    sparks.database().execute(insert, [LIMIT, limit]).unwrap();
    (sparks, album)
}

/// Returns the photos of a person, first the one in which the person was new.
fn photos_of(sparks: &Sparks, person: &str) -> Vec<String> {
    let photos = sparks.events_of("PhotoProcessed").into_iter().filter(|event| {
        let verdict = &event["event_data"]["faces"][0]["verdict"];
        verdict["founded"] == person || verdict["matched"] == person
    });
    photos.map(|event| event["event_data"]["image_id"].as_str().unwrap().to_owned()).collect()
}

fn limit(sparks: &Sparks) -> Value {
    sparks.items().into_iter().find(|item| item["PK"] == LIMIT).unwrap()["limit"].clone()
}

/// Returns the keys of objects whose file names start with this.
fn objects(sparks: &Sparks, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["originals", "processed", "persons"] {
        let files = std::fs::read_dir(sparks.data().join("objects").join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        found.extend(names.filter(|name| name.starts_with(prefix)).map(|name| format!("{folder}/{name}")));
    }
    found
}

fn faces(sparks: &Sparks, image: &str) -> u32 {
    let count = "SELECT count(*) FROM faces WHERE image_id = ?";
    sparks.database().query_row(count, [image], |row| row.get(0)).unwrap()
}

fn rows_of(sparks: &Sparks, pk: &str) -> usize {
    sparks.items().iter().filter(|item| item["PK"] == pk).count()
}

#[test]
fn a_deleted_photo_leaves_only_its_deletion_event() {
    let (sparks, _) = album();
    let photo = &photos_of(&sparks, "person1")[1];
    let others = sparks.items_without_times().into_iter().filter(|item| item["PK"] != photo.as_str());
    let others: Vec<Value> = others.collect();
    assert_eq!((rows_of(&sparks, photo), objects(&sparks, photo).len(), faces(&sparks, photo)), (2, 3, 1));

    let report = sparks.json(["photo", "delete", photo]);
    assert_eq!((&report["outcome"], &report["uploader"]), (&json!("deleted"), &json!("me@localhost")));
    assert_eq!((&report["credited"], &report["limit"]), (&json!(true), &json!(495)));
    assert_eq!((&report["persons_forgotten"], &report["persons_pictured"]), (&json!([]), &json!([])));
    assert_eq!((rows_of(&sparks, photo), objects(&sparks, photo).len(), faces(&sparks, photo)), (0, 0, 0));
    let left: Vec<Value> = sparks.items_without_times();
    let without_limit = |rows: &[Value]| rows.iter().filter(|row| row["PK"] != LIMIT).cloned().collect::<Vec<_>>();
    assert_eq!(without_limit(&left), without_limit(&others), "nothing else was changed");
    assert_eq!(left.iter().find(|row| row["PK"] == LIMIT).unwrap()["note"], "theirs");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.json(["rebuild"]);
    assert_eq!(rows_of(&sparks, photo), 0, "a rebuild restores no row");
    assert_eq!(limit(&sparks), 495);
}

#[test]
fn deleting_twice_changes_nothing_more() {
    let (sparks, _) = album();
    let photo = &photos_of(&sparks, "person1")[0];
    sparks.json(["photo", "delete", photo]);
    let (items, events) = (sparks.text(["items"]), sparks.events().len());
    let again = sparks.json(["photo", "delete", photo]);
    assert_eq!((&again["outcome"], &again["credited"]), (&json!("already_deleted"), &json!(false)));
    assert_eq!((sparks.text(["items"]), sparks.events().len()), (items, events));
    assert!(sparks.text(["photo", "delete", photo]).contains("already deleted"));
}

#[test]
fn deleting_the_first_photo_of_a_person_replaces_the_crop() {
    let (sparks, _) = album();
    let crop = sparks.data().join("objects/persons/person1.jpg");
    let (before, photos) = (std::fs::read(&crop).unwrap(), photos_of(&sparks, "person1"));
    let report = sparks.json(["photo", "delete", &photos[0]]);
    assert_eq!(report["persons_pictured"], json!(["person1"]));
    assert_ne!(std::fs::read(&crop).unwrap(), before);
    sparks.assert_crops();
    let event = sparks.events_of("PersonPictured").pop().unwrap();
    let face = event["event_data"]["face"].to_string();
    assert!(photos[1..].iter().any(|photo| face.contains(photo.as_str())), "{face}");
}

#[test]
fn deleting_the_last_photo_of_a_person_forgets_the_person() {
    let (sparks, _) = album();
    let photos = photos_of(&sparks, "person1");
    let args = ["photo", "delete", "--json"].into_iter().chain(photos.iter().map(String::as_str));
    let report = sparks.text(args);
    let report: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(report.len(), photos.len());
    assert_eq!(report.last().unwrap()["persons_forgotten"], json!(["person1"]));
    assert_eq!(rows_of(&sparks, "PERSON#person1"), 0);
    assert!(objects(&sparks, "person1.").is_empty());
    let signatures = "SELECT count(*) FROM faces WHERE person = 1";
    assert_eq!(sparks.database().query_row(signatures, [], |row| row.get::<_, u32>(0)).unwrap(), 0);
    assert_eq!(limit(&sparks), 494 + photos.len());
    assert_eq!(sparks.json(["verify"])["clean"], true);
}

#[test]
fn ingesting_a_deleted_file_again_reuses_no_person_number() {
    let (sparks, album) = album();
    let photos = photos_of(&sparks, "person1");
    for photo in &photos {
        sparks.json(["photo", "delete", photo]);
    }
    let back = sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    assert_eq!((&back["processed"], &back["persons_new"]), (&json!(photos.len()), &json!(1)));
    for photo in &photos {
        assert_eq!((rows_of(&sparks, photo), objects(&sparks, photo).len()), (2, 3), "{photo}");
    }
    assert_eq!((rows_of(&sparks, "PERSON#person1"), rows_of(&sparks, "PERSON#person3")), (0, 1));
    sparks.assert_crops();
    assert_eq!(sparks.json(["verify"])["clean"], true);
    assert_eq!(sparks.json(["photo", "delete", &photos[0]])["outcome"], "deleted", "it can be deleted again");
}

#[test]
fn deleting_a_photo_without_a_row_credits_no_user() {
    let (sparks, _) = album();
    let photo = &photos_of(&sparks, "person1")[1];
    let delete = "DELETE FROM items WHERE PK = ? AND entityType = 'IMAGE'";
    assert_eq!(sparks.database().execute(delete, [photo]).unwrap(), 1);
    let report = sparks.json(["photo", "delete", photo]);
    assert_eq!((&report["outcome"], &report["uploader"]), (&json!("deleted"), &Value::Null));
    assert_eq!((rows_of(&sparks, photo), objects(&sparks, photo).len(), faces(&sparks, photo)), (0, 0, 0));
    assert_eq!(limit(&sparks), 494);
}

#[test]
fn an_unknown_photo_is_reported_and_the_others_are_deleted() {
    let (sparks, _) = album();
    let photo = &photos_of(&sparks, "person1")[1];
    let unknown = "02df423f-0d45-4d59-b987-2ade841d0fbf";
    assert_eq!(sparks.run(["photo", "delete", photo, "UNKNOWN_PERSONS"]).status.code(), Some(2));
    assert_eq!(rows_of(&sparks, photo), 2, "wrong usage deletes nothing");
    let output = sparks.run(["photo", "delete", unknown, photo]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("there is no photo {unknown}")));
    assert_eq!(rows_of(&sparks, photo), 0);
    assert!(sparks.events_of("PhotoDeleted").len() == 1, "no event about the unknown photo");
}

#[test]
fn a_deleted_photo_is_explained_by_its_deletion() {
    let (sparks, _) = album();
    let photo = &photos_of(&sparks, "person1")[1];
    sparks.json(["photo", "delete", photo]);
    let event = sparks.events_of("PhotoDeleted").pop().unwrap();
    let explanation = sparks.json(["explain", photo]);
    assert_eq!((&explanation["outcome"], &explanation["event"]), (&json!("deleted"), &event["event_id"]));
    let text = sparks.text(["explain", photo]);
    assert!(text.contains("was deleted at the request of me@localhost"), "{text}");
    assert!(text.contains(event["event_id"].as_str().unwrap()), "{text}");
    assert_eq!(sparks.run(["explain", photo, "person1"]).status.code(), Some(1));
}
