//! Adoption: persons and tags that another program wrote are folder over, under the same numbers.

use std::process::Output;

use serde_json::{Value, json};
use sparks_domain::Key;
use sparks_tests::{
    album::{Photo, album, photo},
    legacy_data::{CREATED, LegacyData, name_of, person_of, sorted},
    platform_actions::{deletion_message, original_key, send, upload_limit},
    rekognition_server::RekognitionServer,
    samples::uploader,
    worker::{image_of, open, upload},
};

use crate::sparks::{Sparks, root};

/// A data folder with rows of another program and without an event log.
struct LegacyFolder {
    sparks: Sparks,
    photos: Vec<Photo>,
    legacy: LegacyData,
}

impl LegacyFolder {
    async fn with(change: impl FnOnce(&mut LegacyData)) -> Self {
        let photos = album(&[&[0], &[1], &[0, 2], &[1, 2], &[2]]);
        let (mut legacy, sparks) = (LegacyData::of(&photos), Sparks::new());
        change(&mut legacy);
        let backend = open(&sparks.data());
        legacy.write(backend.store.as_ref(), backend.objects.as_ref()).await;
        Self { sparks, photos, legacy }
    }

    fn run(&self, args: &[&str]) -> Output {
        self.sparks.command(args).env("SPARKS_FACES_ANALYZER", "synthetic").output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Uploads photos and processes them.
    async fn upload_and_process(&self, photos: &[Photo]) {
        upload(&open(&self.sparks.data()), photos).await;
        self.process();
    }

    fn process(&self) {
        let output = self.run(&["run", "--drain", "--listen", "127.0.0.1:0"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn persons_in(&self, photo: &Photo) -> Value {
        self.row(&Key::image(&image_of(photo), &uploader())).expect("IMAGE row exists")["persons"].clone()
    }

    fn row(&self, Key { pk, sk }: &Key) -> Option<Value> {
        self.sparks.items().into_iter().find(|row| row["PK"] == *pk && row["SK"] == *sk)
    }

    fn assert_clean(&self) {
        assert_eq!(self.json(&["verify"])["clean"], true);
        let rebuilt = self.json(&["rebuild"]);
        assert_eq!((&rebuilt["changed"], &rebuilt["before"]), (&json!(0), &rebuilt["after"]));
    }
}

#[tokio::test]
async fn adoption_records_persons_and_tags_and_changes_nothing_else() {
    let folder = LegacyFolder::with(|_| ()).await;
    let dry_run = folder.json(&["adopt", "--dry-run"]);
    assert_eq!((&dry_run["persons"], &dry_run["taggings"]), (&json!(3), &json!(7)), "{dry_run}");
    assert!(folder.sparks.events().is_empty(), "a dry run writes nothing");

    let adopted = folder.json(&["adopt"]);
    let found = ["persons", "photos", "taggings", "numbers_reserved_up_to", "unrecognisable", "alike", "left_alone"];
    let found = found.map(|name| adopted[name].clone());
    assert_eq!(found, [json!(3), json!(5), json!(7), json!(77), json!([]), json!([]), json!([])], "{adopted}");
    assert_eq!(sorted(folder.sparks.items()), folder.legacy.expected_after_adoption());
    let types: Vec<Value> = folder.sparks.events().iter().map(|event| event["event_type"].clone()).collect();
    assert_eq!(
        types[..4],
        [json!("NumbersReserved"), json!("PersonAdopted"), json!("PersonAdopted"), json!("PersonAdopted")]
    );
    assert!(types[4..].iter().all(|name| name == "PhotoAdopted") && types.len() == 9, "{types:?}");
    folder.assert_clean();
    assert_eq!(sorted(folder.sparks.items()), folder.legacy.expected_after_adoption(), "a rebuild changes nothing");

    // Lost rows are rebuilt from the log, without attributes of other programs.
    let lost = folder.sparks.database().execute("DELETE FROM items WHERE PK LIKE 'PERSON#%' OR SK LIKE 'PERSON#%'", []);
    assert_eq!(lost.unwrap(), 3 + 7);
    assert_eq!(folder.json(&["rebuild"])["changed"], 10);
    let person = folder.row(&Key::person(person_of(1))).unwrap();
    assert_eq!((&person["displayName"], &person["createdAt"]), (&json!(name_of(1)), &json!(CREATED + 1)));
    let tag = folder.row(&Key::tagging(&image_of(&folder.photos[2]), person_of(2))).unwrap();
    assert_eq!((&tag["createdAt"], &tag["entityType"]), (&json!(CREATED + 100), &json!("TAGGING#person30")));
}

#[tokio::test]
async fn adopted_persons_are_matched_and_a_new_one_gets_the_next_number() {
    let folder = LegacyFolder::with(|_| ()).await;
    folder.json(&["adopt"]);
    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    folder.upload_and_process(&new).await;
    assert_eq!(folder.persons_in(&new[0]), json!(["person10", "person30"]));
    assert_eq!(folder.persons_in(&new[1]), json!(["person20"]));
    assert_eq!(folder.persons_in(&new[2]), json!(["person78"]), "the counter was 77");
    folder.assert_clean();

    let (events, items) = (folder.sparks.events(), folder.sparks.items());
    let again = folder.json(&["adopt"]);
    let found = ["persons", "persons_known", "photos", "taggings", "numbers_reserved_up_to"];
    let found = found.map(|name| again[name].clone());
    assert_eq!(found, [json!(0), json!(4), json!(0), json!(0), json!(null)], "{again}");
    assert_eq!((folder.sparks.events(), folder.sparks.items()), (events, items), "a second adoption changes nothing");
}

#[tokio::test]
async fn an_upload_of_an_adopted_photo_keeps_each_tag_once() {
    // The photo has a second tag without a face that matches: the other program identified more.
    let folder = LegacyFolder::with(|legacy| {
        let photo = photo(0, &[0]);
        let tag = json!({ "entityType": "TAGGING#person20", "s3Key": "processed/x.webp", "createdAt": CREATED });
        legacy.add(&Key::tagging(&image_of(&photo), person_of(1)), tag);
    })
    .await;
    folder.json(&["adopt"]);
    let first = &folder.photos[0];
    assert_eq!(folder.persons_in(first), json!(["person10", "person20"]));
    let message = json!({ "bucketName": "local", "objectKey": original_key(first) });
    send(&open(&folder.sparks.data()), message).await;
    folder.process();
    let image = image_of(first).to_string();
    let processed = folder.sparks.events_of("PhotoProcessed");
    assert_eq!(processed.len(), 1);
    assert_eq!(processed[0]["event_data"]["adopted"], json!(["person20"]));
    assert_eq!(folder.persons_in(first), json!(["person10", "person20"]));
    let tags = folder.sparks.items().into_iter().filter(|row| row["PK"] == image && row["SK"] != json!(null));
    let tags: Vec<Value> = tags.map(|row| row["SK"].clone()).filter(|sk| sk.as_str().unwrap().contains('#')).collect();
    assert_eq!(tags.len(), 3, "{tags:?}");
    assert!(folder.sparks.text(["explain", &image]).contains("person20: adopted from another worker"));
    folder.assert_clean();
    // Adopted photos need no message.
    assert_eq!(folder.json(&["backfill", "--dry-run"])["sent"], 0);
}

#[tokio::test]
async fn deleting_adopted_photos_forgets_persons_in_no_other_photo() {
    let folder = LegacyFolder::with(|_| ()).await;
    folder.json(&["adopt"]);
    let explained = folder.sparks.text(["explain", image_of(&folder.photos[0]).as_str()]);
    assert!(explained.contains("person10: adopted from another worker"), "{explained}");
    let backend = open(&folder.sparks.data());
    for photo in [&folder.photos[0], &folder.photos[2]] {
        send(&backend, deletion_message(photo)).await;
    }
    folder.process();
    assert_eq!(upload_limit(&backend).await, 502);
    assert_eq!(folder.row(&Key::person(person_of(0))), None, "person10 is forgotten");
    assert!(folder.row(&Key::person(person_of(2))).is_some(), "person30 is in other photos");
    let exists = |key: &str| folder.sparks.data().join("objects").join(key).exists();
    assert!(!exists("persons/person10.jpg") && exists("persons/person30.jpg"));
    let images = folder.sparks.items().into_iter().filter(|row| row["entityType"] == "IMAGE").count();
    assert_eq!(images, 3);
    let signatures: i64 =
        folder.sparks.database().query_row("SELECT count(*) FROM faces", [], |row| row.get(0)).unwrap();
    assert_eq!(signatures, 2, "the signatures of person10 are erased");
    folder.assert_clean();
    let again = photo(30, &[0]);
    folder.upload_and_process(std::slice::from_ref(&again)).await;
    assert_eq!(folder.persons_in(&again), json!(["person78"]), "numbers are never reused");
}

#[tokio::test]
async fn merging_adopted_persons_moves_their_tags_and_unmerging_restores_them() {
    let folder = LegacyFolder::with(|_| ()).await;
    folder.json(&["adopt"]);
    let before = sorted(folder.sparks.items());
    let merged = folder.json(&["persons", "merge", "person10", "person20"]);
    assert_eq!(merged["photos"], 2, "{merged}");
    assert_eq!(folder.persons_in(&folder.photos[3]), json!(["person10", "person30"]));
    assert_eq!(folder.json(&["verify"])["clean"], true);
    folder.json(&["persons", "unmerge", merged["event"].as_str().unwrap()]);
    let mut expected = before;
    // Restored tags have no attributes of the other program.
    for row in expected.iter_mut().filter(|row| row["entityType"] == "TAGGING#person20") {
        row.as_object_mut().unwrap().remove("similarity");
    }
    assert_eq!(sorted(folder.sparks.items()), expected);
    folder.assert_clean();
}

#[tokio::test]
async fn rows_that_cannot_be_adopted_are_reported_with_the_remedy() {
    let folder = LegacyFolder::with(|legacy| {
        legacy.objects.retain(|(key, _)| key != "persons/person10.jpg");
        for (key, bytes) in &mut legacy.objects {
            if key == "persons/person20.jpg" {
                *bytes = b"not a picture".to_vec();
            }
        }
        // One identity with two persons.
        legacy.add_person(5);
        let twin = photo(9_999, &[2]).jpeg;
        legacy.objects.retain(|(key, _)| key != "persons/person60.jpg");
        legacy.objects.push(("persons/person60.jpg".into(), twin));
        legacy.add(&Key::new("PERSON#grandma", "grandma"), json!({ "entityType": "PERSON", "displayName": "Grandma" }));
        let orphan = photo(40, &[]);
        legacy.add(&Key::tagging(&image_of(&orphan), person_of(9)), json!({ "entityType": "TAGGING#person100" }));
    })
    .await;
    let adopted = folder.json(&["adopt"]);
    assert_eq!((&adopted["persons"], &adopted["taggings"]), (&json!(4), &json!(7)), "{adopted}");
    assert_eq!(adopted["numbers_reserved_up_to"], 100, "a tag has a higher number than the counter");
    let unrecognisable: Vec<&Value> =
        adopted["unrecognisable"].as_array().unwrap().iter().map(|one| &one["person"]).collect();
    assert_eq!(unrecognisable, ["person10", "person20"]);
    let alike = &adopted["alike"][0];
    assert_eq!((&alike["into"], &alike["from"]), (&json!("person30"), &json!("person60")), "{adopted}");
    let left = adopted["left_alone"].to_string();
    assert!(left.contains("PERSON#grandma") && left.contains("person100 has no row"), "{left}");
    folder.assert_clean();
    let text = String::from_utf8(folder.run(&["adopt"]).stdout).unwrap();
    assert!(text.contains("persons/person10.jpg: the object does not exist; store a better portrait"), "{text}");

    // The remedy works: with a better portrait the person is recognised.
    let crop = folder.sparks.data().join("objects/persons/person10.jpg");
    std::fs::write(crop, photo(9_000, &[0]).jpeg).unwrap();
    assert_eq!(folder.json(&["adopt"])["pictured"], json!(["person10"]));
    let again = photo(41, &[0]);
    folder.upload_and_process(std::slice::from_ref(&again)).await;
    assert_eq!(folder.persons_in(&again), json!(["person10"]));
    folder.assert_clean();
}

#[tokio::test]
async fn adoption_without_a_face_analyzer_is_refused() {
    let folder = LegacyFolder::with(|_| ()).await;
    let refused = folder.sparks.command(["adopt"]).env("SPARKS_FACES_ANALYZER", "off").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("faces.analyzer") && text.contains("local"), "{text}");
    assert!(folder.sparks.events().is_empty());
}

/// Real faces: only the crops of two persons are left to recognise them by.
#[tokio::test]
async fn real_faces_are_recognised_by_their_crops() {
    let (old, new) = (Sparks::new(), Sparks::new());
    let photo = |name: &str| root().join("tests/photos").join(name).to_str().unwrap().to_owned();
    old.json(["ingest", &photo("biden.jpg"), &photo("obama-1.jpg")]);
    drop(open(&new.data()));
    let database = new.database();
    for mut row in old.items() {
        let fields = row.as_object_mut().unwrap();
        let [pk, sk] = ["PK", "SK"].map(|name| fields.remove(name).unwrap().as_str().unwrap().to_owned());
        fields.remove("persons");
        database.execute("INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)", [pk, sk, row.to_string()]).unwrap();
    }
    std::fs::remove_dir_all(new.data().join("objects")).unwrap();
    std::fs::rename(old.data().join("objects"), new.data().join("objects")).unwrap();
    let adopted = new.json(["adopt"]);
    assert_eq!((&adopted["persons"], &adopted["unrecognisable"]), (&json!(2), &json!([])), "{adopted}");
    let obama = &old.events_of("PhotoProcessed")[1]["event_data"]["faces"][0]["verdict"]["founded"];
    let obama = obama.as_str().unwrap();
    let photos_of = || new.json(["query", "photos-of", obama])["images"].as_array().unwrap().len();
    assert_eq!(photos_of(), 1);
    new.json(["ingest", &photo("obama-2.jpg"), &photo("obama-3.jpg"), &photo("collins.png")]);
    assert_eq!(photos_of(), 3, "matched under the adopted number");
    let persons = new.json(["query", "persons"])["persons"].as_array().unwrap().len();
    assert_eq!(persons, 3, "and a new person gets the next number");
    assert_eq!(new.json(["verify"])["clean"], true);
}

#[test]
fn worker_and_platform_share_a_rekognition_collection() {
    let server = RekognitionServer::start();
    let folder = server.runtime.block_on(LegacyFolder::with(|_| ()));
    server.create_collection();
    for identity in 0..3 {
        server.enroll(&person_of(identity).to_string(), &photo(90 + identity as u64, &[identity]).jpeg);
    }
    let command = |args: &[&str]| {
        // No other analyzer has embeddings of the faces in this collection.
        let mut command = folder.sparks.command(args);
        command.envs(server.settings()).env("SPARKS_FACES_SECONDARY_ANALYZER", "off");
        command
    };
    assert!(folder.run(&["adopt"]).status.success());
    server.take_calls();
    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    server.runtime.block_on(upload(&open(&folder.sparks.data()), &new));
    let output = command(&["run", "--drain", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.persons_in(&new[0]), json!(["person10", "person30"]));
    assert_eq!(folder.persons_in(&new[1]), json!(["person20"]));
    assert_eq!(folder.persons_in(&new[2]), json!(["person78"]), "a new person gets the next number");
    assert_eq!(server.take_calls()["IndexFaces"], 1, "only the new person is enrolled");
    folder.assert_clean();

    assert_eq!(
        server.search(&photo(30, &[8]).jpeg).as_deref(),
        Some("person78"),
        "the platform finds the person enrolled by the worker"
    );
    assert_eq!(server.search(&photo(31, &[1]).jpeg).as_deref(), Some("person20"));
    assert_eq!(server.search(&photo(32, &[9]).jpeg), None);
    let doctor = command(&["doctor"]).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("none above the last allocated person number, 78"), "{text}");

    server.enroll("person500", &photo(33, &[9]).jpeg);
    let doctor = command(&["doctor"]).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        !doctor.status.success() && text.contains("has faces of person500, but the last allocated person number is 78"),
        "{text}"
    );
}
