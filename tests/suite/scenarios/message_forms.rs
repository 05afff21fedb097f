//! Every message form, as its sender writes it, through `sparks send` and `sparks run`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::harness::{ADA, Platform};

const KSUID: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
const UUID: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

fn golden(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/messages")).join(format!("{name}.json"))
}

/// Returns a platform with these originals and their rows.
fn with_originals(keys: &[&str]) -> Platform {
    let platform = Platform::new(3, 2);
    for (n, key) in keys.iter().enumerate() {
        platform.put(key, &platform.photo(n));
        let image = key.trim_start_matches("originals/").rsplit_once('.').unwrap().0;
        platform.put_image(image);
    }
    platform
}

/// Asserts that rows and objects of a processed photo are complete.
fn assert_processed(platform: &Platform, image: &str) {
    let row = platform.image_row(image).unwrap();
    assert_eq!(row["images"]["large"], format!("processed/{image}_large.webp"), "{row}");
    assert_eq!(row["description"], "by hand", "attributes of the platform stay");
    let persons = platform.persons_in(image);
    assert!(!persons.is_empty(), "{row}");
    for person in persons {
        let tagging = platform.item(image, &format!("PERSON#{person}")).expect("TAGGING row exists");
        assert_eq!(tagging["entityType"], format!("TAGGING#{person}"));
        assert!(platform.object(&format!("persons/{person}.jpg")).is_file());
    }
    for size in ["large", "medium"] {
        assert!(platform.object(&format!("processed/{image}_{size}.webp")).is_file());
    }
}

#[test]
fn an_upload_in_every_form_is_processed() {
    let (ksuid, uuid) = (format!("originals/{KSUID}"), format!("originals/{UUID}"));
    for (form, keys) in [
        ("s3_created", vec![format!("{ksuid}.jpg")]),
        ("s3_compatible_store", vec![format!("{ksuid}.gif")]),
        ("s3_several_records", vec![format!("{uuid}.png"), "originals/2lEXTV8XXEuTpYFKgyjiZ7zVYhx.JPEG".into()]),
        ("sns_s3_created", vec![format!("{ksuid}.webp"), format!("{uuid}.jpg")]),
        ("event_bridge_created", vec![format!("{uuid}.jpg")]),
        ("sns_event_bridge_created", vec![format!("{uuid}.jpg")]),
        ("legacy", vec![format!("{uuid}.jpg")]),
        ("own_upload", vec![format!("{ksuid}.jpg")]),
        ("thumbnail_completed_without_medium", vec![format!("{ksuid}.jpg")]),
    ] {
        println!("{form}");
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let platform = with_originals(&keys);
        platform.send_file(&golden(form));
        platform.drain();
        for key in keys {
            assert_processed(&platform, key.trim_start_matches("originals/").rsplit_once('.').unwrap().0);
        }
        assert_eq!(platform.dead_letters(), [json!(null); 0]);
        assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    }
}

/// Existing variants are used unchanged, and no second thumbnail-completed notification is sent.
#[test]
fn existing_variants_are_reused() {
    for form in ["thumbnail_completed", "sns_thumbnail_completed"] {
        let platform = with_originals(&[&format!("originals/{KSUID}.jpg")]);
        let (large, medium) = (format!("processed/{KSUID}_large.webp"), format!("processed/{KSUID}_medium.webp"));
        platform.put(&large, &platform.photo(0));
        platform.put(&medium, &platform.photo(1));
        platform.send_file(&golden(form));
        platform.drain();
        assert_processed(&platform, KSUID);
        assert_eq!(fs::read(platform.object(&large)).unwrap(), platform.photo(0), "not rendered again");
        assert_eq!(fs::read(platform.object(&medium)).unwrap(), platform.photo(1), "not rendered again");
        let published = platform.sparks.text(["tail", "-n", "100", "--json"]);
        assert!(published.contains("PhotoProcessed") && !published.contains("thumbnail-completed"), "{published}");
    }
}

#[test]
fn irrelevant_messages_are_acknowledged_without_effect() {
    let platform = Platform::new(1, 1);
    let before = platform.sparks.text(["items"]);
    for form in [
        "s3_test",
        "sns_s3_test",
        "s3_lifecycle_expiration",
        "event_bridge_lifecycle_expiration",
        "event_bridge_tags_added",
        "s3_glacier_restored",
        "sns_subscription_confirmation",
        "sns_unsubscribe_confirmation",
    ] {
        platform.send_file(&golden(form));
    }
    platform.drain();
    assert_eq!((platform.dead_letters().len(), platform.unsettled()), (0, 0));
    assert_eq!((platform.sparks.events().len(), platform.sparks.text(["items"])), (0, before));
}

#[test]
fn a_refused_message_is_a_dead_letter_with_its_cause() {
    let platform = with_originals(&[&format!("originals/{KSUID}.jpg")]);
    let forms = [
        ("refused_counter", "bad-key", "UNKNOWN_PERSONS"),
        ("refused_foreign_profile", "bad-key", "profiles/eve@example.org/x.jpg"),
        ("refused_no_records", "malformed", "Records"),
        ("refused_other_bucket", "other-bucket", "sparks-staging"),
        ("refused_unknown_action", "malformed", "restore"),
        ("refused_unknown_form", "malformed", "jobId"),
    ];
    for (form, ..) in forms {
        platform.send_file(&golden(form));
    }
    platform.drain();
    let dead_letters = platform.dead_letters();
    assert_eq!(dead_letters.len(), forms.len());
    for (letter, (form, cause, detail)) in dead_letters.iter().zip(forms) {
        assert_eq!(letter["cause"], cause, "{form}: {letter}");
        assert!(letter["reason"].as_str().unwrap().contains(detail), "{form}: {letter}");
    }
    assert_processed(&platform, KSUID); // another record of the message that names the counter
    assert_eq!(platform.sparks.events_of("PhotoProcessed").len(), 1);
}

#[test]
fn a_profile_picture_in_every_form_identifies_its_user() {
    for (form, email, key) in [
        (
            "profile_picture",
            "ada+photos@example.org",
            "profiles/ada+photos@example.org/3f0c1b52-8b0e-4d5c-9a43-0c8a3e2f7d11 100%.jpg",
        ),
        ("s3_profile_picture", "ada+photos@example.org", "profiles/ada+photos@example.org/my face + 100% Käse.jpg"),
        (
            "event_bridge_profile_picture",
            "ada+photos@example.org",
            "profile-pictures/ada+photos@example.org/my face + 100%25.jpg",
        ),
        ("sns_profile_picture", ADA, "profile-pictures/ada@example.org/3f0c1b52-8b0e-4d5c-9a43-0c8a3e2f7d11.jpg"),
    ] {
        let platform = Platform::new(2, 1);
        platform.put(key, &platform.photo(0));
        platform.put_item(email, email, &json!({ "entityType": "USER", "email": email, "username": "Ada" }));
        platform.send_file(&golden(form));
        platform.drain();
        let user = platform.item(email, email).unwrap();
        assert_eq!((&user["personId"], &user["username"]), (&json!("person1"), &json!("Ada")), "{form}: {user}");
        assert!(user["updatedAt"].as_str().unwrap().ends_with('Z'));
        let taggings = |item: &Value| item["entityType"].as_str().is_some_and(|kind| kind.starts_with("TAGGING#"));
        assert!(!platform.sparks.items().iter().any(taggings), "{form}: no tag");
        assert!(platform.object("persons/person1.jpg").is_file());

        // Its image ID is not that of a photo, so a deletion message for it has no effect.
        let image = platform.sparks.events_of("ProfileProcessed")[0]["event_data"]["image_id"].clone();
        platform.send(&[crate::harness::delete(image.as_str().unwrap())]);
        platform.drain();
        assert_eq!(platform.sparks.events_of("PhotoDeleted").len(), 0);

        // A photo of the same face is matched to the same person.
        let image = platform.upload(1);
        platform.send(&[crate::harness::created(&image)]);
        platform.drain();
        assert_eq!(platform.persons_in(&image), ["person1"]);
        assert_eq!(platform.sparks.json(["verify"])["clean"], true);
    }
}

#[test]
fn a_deletion_in_every_form_removes_the_photo_once() {
    for (form, image, credited) in [
        ("delete", UUID, true),
        ("sns_delete", KSUID, true),
        ("s3_removed", UUID, false),
        ("event_bridge_deleted", KSUID, false),
    ] {
        println!("{form}");
        let platform = with_originals(&[&format!("originals/{image}.jpg")]);
        platform.put_limit(ADA, 41);
        platform
            .send(&[json!({ "bucketName": crate::harness::BUCKET, "objectKey": format!("originals/{image}.jpg") })
                .to_string()]);
        platform.drain();
        assert_processed(&platform, image);
        let persons = platform.persons_in(image);
        if !credited {
            fs::remove_file(platform.object(&format!("originals/{image}.jpg"))).unwrap();
        }
        for _ in 0..2 {
            platform.send_file(&golden(form));
            platform.drain();
            let limit = platform.item(&format!("LIMIT#{ADA}"), ADA).unwrap()["limit"].clone();
            assert_eq!(limit, if credited { 42 } else { 41 }, "{form}");
            let row = platform.image_row(image);
            assert!(
                row.is_none_or(|row| row["images"].is_null() && row["persons"].is_null()),
                "{form}: the worker's attributes are removed"
            );
            assert_eq!(
                platform.image_row(image).is_none(),
                credited,
                "the row stays if the platform deletes it itself"
            );
            for person in &persons {
                assert_eq!(platform.item(image, &format!("PERSON#{person}")), None);
                assert_eq!(platform.item(&format!("PERSON#{person}"), person), None, "in no other photo");
                assert!(!platform.object(&format!("persons/{person}.jpg")).exists());
            }
            for object in [
                format!("originals/{image}.jpg"),
                format!("processed/{image}_large.webp"),
                format!("processed/{image}_medium.webp"),
            ] {
                assert!(!platform.object(&object).exists(), "{form}: {object}");
            }
            let signatures = "SELECT count(*) FROM faces";
            assert_eq!(platform.sparks.database().query_row(signatures, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        }
        assert_eq!(platform.sparks.events_of("PhotoDeleted").len(), 1, "{form}");
        assert_eq!(
            (platform.dead_letters().len(), platform.sparks.json(["verify"])["clean"].clone()),
            (0, json!(true))
        );
        assert!(
            platform.item("UNKNOWN_PERSONS", "UNKNOWN_PERSONS").unwrap()["limit"].as_u64() >= Some(1),
            "numbers are not reused"
        );
    }
}
