//! Why each tag of a photo is there.

use serde_json::{Value, json};

use crate::sparks::Sparks;

fn album() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(6, 2, &["--faces-per-photo", "1"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    sparks
}

/// The first photo with a face of this verdict.
fn photo(sparks: &Sparks, verdict: &str) -> Value {
    let photos = sparks.events_of("PhotoProcessed");
    let is_it = |event: &&Value| event["event_data"]["faces"][0]["verdict"][verdict].is_string();
    photos.iter().find(is_it).unwrap_or_else(|| panic!("nobody was {verdict}")).clone()
}

fn image(event: &Value) -> &str {
    event["event_data"]["image_id"].as_str().unwrap()
}

#[test]
fn a_tag_is_explained_with_its_event_candidates_and_threshold() {
    let sparks = album();
    let event = photo(&sparks, "matched");
    let face = &event["event_data"]["faces"][0];
    let told = sparks.json(["explain", image(&event)]);
    assert_eq!((&told["image"], &told["event"]), (&event["event_data"]["image_id"], &event["event_id"]));
    assert_eq!((&told["event_seq"], &told["analyzer"]), (&event["seq"], &json!("synthetic")));
    let explained = &told["faces"][0];
    for key in ["candidates", "threshold", "verdict", "box", "model", "quality", "confidence"] {
        assert_eq!(explained[key], face[key], "{key}");
    }
    assert_eq!(explained["person"], face["verdict"]["matched"]);
    assert_eq!((&explained["event"], &explained["merges"]), (&event["event_id"], &json!([])));

    let text = sparks.text(["explain", image(&event)]);
    let person = face["verdict"]["matched"].as_str().unwrap();
    let similarity = format!("{:.4}", face["candidates"][0]["similarity"].as_f64().unwrap());
    for words in [&format!("this is {person}"), &similarity, "is enough", event["event_id"].as_str().unwrap()] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
}

#[test]
fn a_stranger_is_explained_by_what_was_missing() {
    let sparks = album();
    let event = photo(&sparks, "founded");
    let text = sparks.text(["explain", image(&event)]);
    assert!(text.contains("this was a stranger, who became person1: nobody was known yet"), "{text}");
}

#[test]
fn one_person_alone_is_explained_and_nobody_else() {
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
    assert!(String::from_utf8_lossy(&missing.stderr).contains("person9 is not in this photo"));
}

#[test]
fn a_merge_is_part_of_the_explanation_while_it_holds() {
    let sparks = album();
    let merged = sparks.json(["persons", "merge", "person1", "person2"]);
    let id = merged["event"].as_str().unwrap();
    let events = sparks.events_of("PhotoProcessed");
    let of_person2 = |event: &&Value| event["event_data"]["faces"][0]["verdict"].to_string().contains("person2");
    let event = events.iter().find(of_person2).expect("a photo of person2");
    let told = sparks.json(["explain", image(event), "person1"]);
    assert_eq!(told["faces"][0]["merges"], json!([{ "event": id, "into": "person1", "grounds": "told" }]));
    let text = sparks.text(["explain", image(event)]);
    assert!(text.contains(&format!("since then person2 is person1, by event {id}: somebody said so")), "{text}");
    sparks.json(["persons", "unmerge", id]);
    let parted = sparks.json(["explain", image(event)]);
    assert_eq!((&parted["faces"][0]["person"], &parted["faces"][0]["merges"]), (&json!("person2"), &json!([])));
}

#[test]
fn what_cannot_be_explained_is_said_by_name() {
    let sparks = album();
    let unknown = sparks.run(["explain", "02df423f-0d45-4d59-b987-2ade841d0fbf"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("see `sparks query photos`"));
    let event = photo(&sparks, "founded");
    for wrong in [&["explain", "../x"][..], &["explain", image(&event), "Bob"]] {
        assert_eq!(sparks.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
