//! A table that another worker filled becomes ours: the same persons, under the same numbers.

use std::process::Output;

use serde_json::{Value, json};
use sparks_domain::Key;
use sparks_tests::{
    album::{Photo, album, photo},
    legacy::{CREATED, Legacy, name_of, person_of, sorted},
    platform::{allowed, deletion, original, send},
    rekognition::RekognitionServer,
    samples::uploader,
    worker::{image_of, open, upload},
};

use crate::sparks::{Sparks, root};

/// What another worker left, in a data folder without a log.
struct Taken {
    sparks: Sparks,
    photos: Vec<Photo>,
    legacy: Legacy,
}

impl Taken {
    async fn over(change: impl FnOnce(&mut Legacy)) -> Self {
        let photos = album(&[&[0], &[1], &[0, 2], &[1, 2], &[2]]);
        let (mut legacy, sparks) = (Legacy::of(&photos), Sparks::new());
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

    /// Uploads photos and lets a worker take them in.
    async fn take_in(&self, photos: &[Photo]) {
        upload(&open(&self.sparks.data()), photos).await;
        self.work();
    }

    fn work(&self) {
        let worked = self.run(&["run", "--drain", "--listen", "127.0.0.1:0"]);
        assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
    }

    fn persons_in(&self, photo: &Photo) -> Value {
        self.row(&Key::image(&image_of(photo), &uploader())).expect("the photo's row")["persons"].clone()
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
async fn persons_and_tags_become_ours_and_nothing_else_changes() {
    let taken = Taken::over(|_| ()).await;
    let rehearsed = taken.json(&["adopt", "--dry-run"]);
    assert_eq!((&rehearsed["persons"], &rehearsed["taggings"]), (&json!(3), &json!(7)), "{rehearsed}");
    assert!(taken.sparks.events().is_empty(), "a rehearsal writes nothing");

    let adopted = taken.json(&["adopt"]);
    let found = ["persons", "photos", "taggings", "numbers_reserved_up_to", "unrecognisable", "alike", "left_alone"];
    let found = found.map(|name| adopted[name].clone());
    assert_eq!(found, [json!(3), json!(5), json!(7), json!(77), json!([]), json!([]), json!([])], "{adopted}");
    assert_eq!(sorted(taken.sparks.items()), taken.legacy.adopted());
    let types: Vec<Value> = taken.sparks.events().iter().map(|event| event["event_type"].clone()).collect();
    assert_eq!(
        types[..4],
        [json!("NumbersReserved"), json!("PersonAdopted"), json!("PersonAdopted"), json!("PersonAdopted")]
    );
    assert!(types[4..].iter().all(|name| name == "PhotoAdopted") && types.len() == 9, "{types:?}");
    taken.assert_clean();
    assert_eq!(sorted(taken.sparks.items()), taken.legacy.adopted(), "a rebuild changes nothing");

    // What is told of persons comes from the log: rows that are lost come back as they were, foreign attributes aside.
    let lost = taken.sparks.database().execute("DELETE FROM items WHERE PK LIKE 'PERSON#%' OR SK LIKE 'PERSON#%'", []);
    assert_eq!(lost.unwrap(), 3 + 7);
    assert_eq!(taken.json(&["rebuild"])["changed"], 10);
    let person = taken.row(&Key::person(person_of(1))).unwrap();
    assert_eq!((&person["displayName"], &person["createdAt"]), (&json!(name_of(1)), &json!(CREATED + 1)));
    let tag = taken.row(&Key::tagging(&image_of(&taken.photos[2]), person_of(2))).unwrap();
    assert_eq!((&tag["createdAt"], &tag["entityType"]), (&json!(CREATED + 100), &json!("TAGGING#person30")));
}

#[tokio::test]
async fn whoever_was_known_is_recognised_and_a_stranger_gets_the_next_number() {
    let taken = Taken::over(|_| ()).await;
    taken.json(&["adopt"]);
    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    taken.take_in(&new).await;
    assert_eq!(taken.persons_in(&new[0]), json!(["person10", "person30"]));
    assert_eq!(taken.persons_in(&new[1]), json!(["person20"]));
    assert_eq!(taken.persons_in(&new[2]), json!(["person78"]), "the counter stood at 77");
    taken.assert_clean();

    let (events, items) = (taken.sparks.events(), taken.sparks.items());
    let again = taken.json(&["adopt"]);
    let found = ["persons", "persons_known", "photos", "taggings", "numbers_reserved_up_to"];
    let found = found.map(|name| again[name].clone());
    assert_eq!(found, [json!(0), json!(4), json!(0), json!(0), json!(null)], "{again}");
    assert_eq!((taken.sparks.events(), taken.sparks.items()), (events, items), "a second time changes nothing");
}

#[tokio::test]
async fn an_upload_of_an_adopted_photo_neither_loses_nor_doubles_a_tag() {
    // The second person of the photo is one whom no face in it is: the other worker saw more than we do.
    let taken = Taken::over(|legacy| {
        let photo = photo(0, &[0]);
        let tag = json!({ "entityType": "TAGGING#person20", "s3Key": "processed/x.webp", "createdAt": CREATED });
        legacy.add(&Key::tagging(&image_of(&photo), person_of(1)), tag);
    })
    .await;
    taken.json(&["adopt"]);
    let first = &taken.photos[0];
    assert_eq!(taken.persons_in(first), json!(["person10", "person20"]));
    let message = json!({ "bucketName": "local", "objectKey": original(first) });
    send(&open(&taken.sparks.data()), message).await;
    taken.work();
    let image = image_of(first).to_string();
    let processed = taken.sparks.events_of("PhotoProcessed");
    assert_eq!(processed.len(), 1);
    assert_eq!(processed[0]["event_data"]["adopted"], json!(["person20"]));
    assert_eq!(taken.persons_in(first), json!(["person10", "person20"]));
    let tags = taken.sparks.items().into_iter().filter(|row| row["PK"] == image && row["SK"] != json!(null));
    let tags: Vec<Value> = tags.map(|row| row["SK"].clone()).filter(|sk| sk.as_str().unwrap().contains('#')).collect();
    assert_eq!(tags.len(), 3, "{tags:?}");
    assert!(taken.sparks.text(["explain", &image]).contains("person20: adopted, decided before us"));
    taken.assert_clean();
    // No message is left for photos that were taken over.
    assert_eq!(taken.json(&["backfill", "--dry-run"])["sent"], 0);
}

#[tokio::test]
async fn deleting_adopted_photos_forgets_whoever_is_in_no_other() {
    let taken = Taken::over(|_| ()).await;
    taken.json(&["adopt"]);
    let explained = taken.sparks.text(["explain", image_of(&taken.photos[0]).as_str()]);
    assert!(explained.contains("person10: adopted, decided before us"), "{explained}");
    let backend = open(&taken.sparks.data());
    for photo in [&taken.photos[0], &taken.photos[2]] {
        send(&backend, deletion(photo)).await;
    }
    taken.work();
    assert_eq!(allowed(&backend).await, 502);
    assert_eq!(taken.row(&Key::person(person_of(0))), None, "nobody is left of person10");
    assert!(taken.row(&Key::person(person_of(2))).is_some(), "person30 is in others");
    let kept = |key: &str| taken.sparks.data().join("objects").join(key).exists();
    assert!(!kept("persons/person10.jpg") && kept("persons/person30.jpg"));
    let images = taken.sparks.items().into_iter().filter(|row| row["entityType"] == "IMAGE").count();
    assert_eq!(images, 3);
    let signatures: i64 =
        taken.sparks.database().query_row("SELECT count(*) FROM faces", [], |row| row.get(0)).unwrap();
    assert_eq!(signatures, 2, "what person10 looks like is gone");
    taken.assert_clean();
    let again = photo(30, &[0]);
    taken.take_in(std::slice::from_ref(&again)).await;
    assert_eq!(taken.persons_in(&again), json!(["person78"]), "numbers are never reused");
}

#[tokio::test]
async fn joining_adopted_persons_moves_their_tags_and_parting_brings_them_back() {
    let taken = Taken::over(|_| ()).await;
    taken.json(&["adopt"]);
    let before = sorted(taken.sparks.items());
    let merged = taken.json(&["persons", "merge", "person10", "person20"]);
    assert_eq!(merged["photos"], 2, "{merged}");
    assert_eq!(taken.persons_in(&taken.photos[3]), json!(["person10", "person30"]));
    assert_eq!(taken.json(&["verify"])["clean"], true);
    taken.json(&["persons", "unmerge", merged["event"].as_str().unwrap()]);
    let mut expected = before;
    // Tags that went and came back are ours alone.
    for row in expected.iter_mut().filter(|row| row["entityType"] == "TAGGING#person20") {
        row.as_object_mut().unwrap().remove("similarity");
    }
    assert_eq!(sorted(taken.sparks.items()), expected);
    taken.assert_clean();
}

#[tokio::test]
async fn what_cannot_be_taken_over_is_named_with_what_to_do() {
    let taken = Taken::over(|legacy| {
        legacy.objects.retain(|(key, _)| key != "persons/person10.jpg");
        for (key, bytes) in &mut legacy.objects {
            if key == "persons/person20.jpg" {
                *bytes = b"not a picture".to_vec();
            }
        }
        // Somebody who was made two persons.
        legacy.add_person(5);
        let twin = photo(9_999, &[2]).jpeg;
        legacy.objects.retain(|(key, _)| key != "persons/person60.jpg");
        legacy.objects.push(("persons/person60.jpg".into(), twin));
        legacy.add(&Key::new("PERSON#grandma", "grandma"), json!({ "entityType": "PERSON", "displayName": "Grandma" }));
        let orphan = photo(40, &[]);
        legacy.add(&Key::tagging(&image_of(&orphan), person_of(9)), json!({ "entityType": "TAGGING#person100" }));
    })
    .await;
    let adopted = taken.json(&["adopt"]);
    assert_eq!((&adopted["persons"], &adopted["taggings"]), (&json!(4), &json!(7)), "{adopted}");
    assert_eq!(adopted["numbers_reserved_up_to"], 100, "a tag has a higher number than the counter");
    let why: Vec<&Value> = adopted["unrecognisable"].as_array().unwrap().iter().map(|one| &one["person"]).collect();
    assert_eq!(why, ["person10", "person20"]);
    let alike = &adopted["alike"][0];
    assert_eq!((&alike["into"], &alike["from"]), (&json!("person30"), &json!("person60")), "{adopted}");
    let left = adopted["left_alone"].to_string();
    assert!(left.contains("PERSON#grandma") && left.contains("there is no row of person100"), "{left}");
    taken.assert_clean();
    let spoken = String::from_utf8(taken.run(&["adopt"]).stdout).unwrap();
    assert!(spoken.contains("persons/person10.jpg: there is no such object; store a better picture"), "{spoken}");

    // The remedy works: a better picture, and they are recognised.
    let crop = taken.sparks.data().join("objects/persons/person10.jpg");
    std::fs::write(crop, photo(9_000, &[0]).jpeg).unwrap();
    assert_eq!(taken.json(&["adopt"])["pictured"], json!(["person10"]));
    let again = photo(41, &[0]);
    taken.take_in(std::slice::from_ref(&again)).await;
    assert_eq!(taken.persons_in(&again), json!(["person10"]));
    taken.assert_clean();
}

#[tokio::test]
async fn nobody_is_adopted_whom_nobody_could_recognise() {
    let taken = Taken::over(|_| ()).await;
    let refused = taken.sparks.command(["adopt"]).env("SPARKS_FACES_ANALYZER", "off").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("faces.analyzer") && said.contains("local"), "{said}");
    assert!(taken.sparks.events().is_empty());
}

/// Real faces: the crops that a worker cut out are all that is left to know two persons by.
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
    assert_eq!(photos_of(), 3, "he is recognised, under the number he had");
    let persons = new.json(["query", "persons"])["persons"].as_array().unwrap().len();
    assert_eq!(persons, 3, "and a stranger gets the next");
    assert_eq!(new.json(["verify"])["clean"], true);
}

#[test]
fn a_collection_that_the_platform_filled_goes_on_working_and_one_that_we_filled_works_for_the_platform() {
    let server = RekognitionServer::start();
    let taken = server.runtime.block_on(Taken::over(|_| ()));
    server.create();
    for identity in 0..3 {
        server.teach(&person_of(identity).to_string(), &photo(90 + identity as u64, &[identity]).jpeg);
    }
    let command = |args: &[&str]| {
        // Whom the collection knows, nobody else could tell: no companion has seen these faces.
        let mut command = taken.sparks.command(args);
        command.envs(server.settings()).env("SPARKS_FACES_COMPANION", "off");
        command
    };
    assert!(taken.run(&["adopt"]).status.success());
    server.take_calls();
    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    server.runtime.block_on(upload(&open(&taken.sparks.data()), &new));
    let worked = command(&["run", "--drain", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
    assert_eq!(taken.persons_in(&new[0]), json!(["person10", "person30"]));
    assert_eq!(taken.persons_in(&new[1]), json!(["person20"]));
    assert_eq!(taken.persons_in(&new[2]), json!(["person78"]), "a stranger gets the next number");
    assert_eq!(server.take_calls()["IndexFaces"], 1, "and only they are new to the collection");
    taken.assert_clean();

    assert_eq!(server.ask(&photo(30, &[8]).jpeg).as_deref(), Some("person78"), "the platform finds whom we taught");
    assert_eq!(server.ask(&photo(31, &[1]).jpeg).as_deref(), Some("person20"));
    assert_eq!(server.ask(&photo(32, &[9]).jpeg), None);
    let doctor = command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("nobody whose number is still to be given out"), "{said}");

    server.teach("person500", &photo(33, &[9]).jpeg);
    let doctor = command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        !doctor.status.success() && said.contains("it knows person500, and the last number given out is 78"),
        "{said}"
    );
}
