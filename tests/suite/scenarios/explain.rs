//! `sparks explain`: the reason for each tag of a photo.

use serde_json::{Value, json};

use crate::sparks::Sparks;

fn album() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(6, 2, &["--faces-per-photo", "1"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    sparks
}

/// Returns the first photo whose first face has this verdict.
fn photo(sparks: &Sparks, verdict: &str) -> Value {
    let photos = sparks.events_of("PhotoProcessed");
    let has_verdict = |event: &&Value| event["event_data"]["faces"][0]["verdict"][verdict].is_string();
    photos.iter().find(has_verdict).unwrap_or_else(|| panic!("no face was {verdict}")).clone()
}

fn image(event: &Value) -> &str {
    event["event_data"]["image_id"].as_str().unwrap()
}

#[test]
fn a_tag_is_explained_with_its_event_candidates_and_threshold() {
    let sparks = album();
    let event = photo(&sparks, "matched");
    let face = &event["event_data"]["faces"][0];
    let report = sparks.json(["explain", image(&event)]);
    assert_eq!((&report["image"], &report["event"]), (&event["event_data"]["image_id"], &event["event_id"]));
    assert_eq!((&report["event_seq"], &report["analyzer"]), (&event["seq"], &json!("synthetic")));
    let explained = &report["faces"][0];
    for key in ["candidates", "threshold", "verdict", "box", "model", "quality", "confidence"] {
        assert_eq!(explained[key], face[key], "{key}");
    }
    assert_eq!(explained["person"], face["verdict"]["matched"]);
    assert_eq!((&explained["event"], &explained["merges"]), (&event["event_id"], &json!([])));

    let text = sparks.text(["explain", image(&event)]);
    let person = face["verdict"]["matched"].as_str().unwrap();
    let similarity = format!("{:.4}", face["candidates"][0]["similarity"].as_f64().unwrap());
    for expected in [&format!("matched {person}"), &similarity, "threshold", event["event_id"].as_str().unwrap()] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn a_new_person_is_explained_by_the_missing_candidates() {
    let sparks = album();
    let event = photo(&sparks, "founded");
    let text = sparks.text(["explain", image(&event)]);
    assert!(text.contains("new person person1: no persons were known yet"), "{text}");
}

#[test]
fn a_person_argument_limits_the_explanation_to_that_person() {
    let sparks = Sparks::new();
    let album = sparks.synth(4, 2, &["--faces-per-photo", "2"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let event = photo(&sparks, "founded");
    let whole = sparks.json(["explain", image(&event)]);
    assert_eq!(whole["faces"].as_array().unwrap().len(), 2, "{whole}");
    let one = sparks.json(["explain", image(&event), "person2"]);
    assert_eq!(one["faces"].as_array().unwrap().len(), 1, "{one}");
    assert_eq!(one["faces"][0]["person"], "person2");
    let missing = sparks.run(["explain", image(&event), "person9"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("person9 is not in photo"));
}

#[test]
fn a_merge_is_explained_until_it_is_undone() {
    let sparks = album();
    let merged = sparks.json(["persons", "merge", "person1", "person2"]);
    let id = merged["event"].as_str().unwrap();
    let events = sparks.events_of("PhotoProcessed");
    let of_person2 = |event: &&Value| event["event_data"]["faces"][0]["verdict"].to_string().contains("person2");
    let event = events.iter().find(of_person2).expect("photo of person2");
    let report = sparks.json(["explain", image(event), "person1"]);
    assert_eq!(report["faces"][0]["merges"], json!([{ "event": id, "into": "person1", "grounds": "told" }]));
    let text = sparks.text(["explain", image(event)]);
    assert!(
        text.contains(&format!("since then person2 was merged into person1 by event {id}: requested by a user")),
        "{text}"
    );
    sparks.json(["persons", "unmerge", id]);
    let unmerged = sparks.json(["explain", image(event)]);
    assert_eq!((&unmerged["faces"][0]["person"], &unmerged["faces"][0]["merges"]), (&json!("person2"), &json!([])));
}

#[test]
fn unknown_photos_and_invalid_arguments_are_errors() {
    let sparks = album();
    let unknown = sparks.run(["explain", "02df423f-0d45-4d59-b987-2ade841d0fbf"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("see `sparks query photos`"));
    let event = photo(&sparks, "founded");
    for wrong in [&["explain", "../x"][..], &["explain", image(&event), "Bob"]] {
        assert_eq!(sparks.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
