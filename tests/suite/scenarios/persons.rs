//! Saying who is who: suggestions, merges, and taking them back.

use serde_json::{Value, json};

use crate::sparks::Sparks;

/// Photos of one face each, of three identities.
fn album() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(12, 3, &["--faces-per-photo", "1"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    sparks
}

fn photos_of(sparks: &Sparks, person: &str) -> usize {
    sparks.json(["query", "photos-of", person])["images"].as_array().unwrap().len()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_merge_is_made_listed_and_taken_back() {
    let sparks = album();
    let items = sparks.text(["items"]);
    let photos = [photos_of(&sparks, "person1"), photos_of(&sparks, "person3")];
    assert!(photos.iter().all(|photos| *photos > 0), "{photos:?}");

    let merged = sparks.json(["persons", "merge", "person3", "person1"]);
    assert_eq!(
        (&merged["into"], &merged["from"], &merged["photos"]),
        (&json!("person1"), &json!("person3"), &json!(photos[1]))
    );
    assert_eq!(photos_of(&sparks, "person1"), photos[0] + photos[1]);
    assert_eq!(sparks.run(["query", "person", "person3"]).status.code(), Some(1), "nobody of their own");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
    assert!(!sparks.data().join("objects/persons/person3.jpg").exists());

    let event = merged["event"].as_str().unwrap();
    let listed = lines(&sparks.text(["persons", "merges", "--json"]));
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["event"], &listed[0]["holds"]), (&json!(event), &json!(true)));
    assert_eq!((&listed[0]["into"], &listed[0]["from"]), (&json!("person1"), &json!("person3")));
    assert_eq!(listed[0]["grounds"], "told");
    let told = sparks.text(["events"]);
    let line = told.lines().find(|line| line.contains("PersonsMerged")).expect("the merge in the log");
    assert!(line.contains("person3 is person1"), "{line}");

    let parted = sparks.json(["persons", "unmerge", event]);
    assert_eq!((&parted["person"], &parted["photos"]), (&json!("person3"), &json!(photos[0] + photos[1])));
    assert_eq!(sparks.text(["items"]), items, "not a byte differs");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
    assert_eq!(lines(&sparks.text(["persons", "merges", "--json"]))[0]["holds"], false);
    let undone = sparks.events_of("MergeUndone");
    assert_eq!(undone[0]["event_data"]["merge"], event);
    assert!(sparks.text(["events"]).lines().any(|line| line.contains("MergeUndone")));

    // Once more changes nothing.
    sparks.json(["persons", "unmerge", event]);
    assert_eq!((sparks.text(["items"]), sparks.events_of("MergeUndone").len()), (items, 1));
}

#[test]
fn words_say_how_to_take_a_merge_back() {
    let sparks = album();
    let text = sparks.command(["persons", "merge", "person1", "person2"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("person2 is person1 now"), "{text}");
    let command = text.split('`').nth(1).expect("a command to type");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(sparks.text(&words).contains("person2 is a person of their own again"), "{command}");
    let merges = sparks.text(["persons", "merges"]);
    assert!(merges.contains("person2 is person1") && merges.contains("taken back"), "{merges}");
}

#[test]
fn what_cannot_be_meant_is_exit_code_2_and_names_the_remedy() {
    let sparks = album();
    let event = sparks.events()[0]["event_id"].as_str().unwrap().to_owned();
    sparks.json(["persons", "merge", "person1", "person2"]);
    let items = sparks.text(["items"]);
    for (args, words) in [
        (vec!["merge", "person1", "person99"], "there is no person99: see `sparks query persons`"),
        (vec!["merge", "person3", "person3"], "person3 is person3 already"),
        (vec!["merge", "person2", "person1"], "person2 is person1 already: see `sparks persons merges`"),
        (vec!["merge", "person1", "Bob"], "is not a person ID (person1, person2, ...)"),
        (vec!["unmerge", &event], "is not a merge: see `sparks persons merges`"),
        (vec!["unmerge", "12345678-1234-5234-8234-123456789012"], "see `sparks persons merges`"),
        (vec!["unmerge", "nonsense"], "is not an event ID"),
    ] {
        let output = sparks.run(["persons"].iter().chain(&args));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
    assert_eq!(sparks.text(["items"]), items);
    assert_eq!(sparks.events_of("PersonsMerged").len(), 1);
}

#[test]
fn those_seen_in_one_photo_are_joined_by_force_only() {
    let sparks = Sparks::new();
    let album = sparks.synth(6, 2, &["--faces-per-photo", "2"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let refused = sparks.run(["persons", "merge", "person1", "person2"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--force"), "{text}");
    assert_eq!(sparks.json(["persons", "merge", "person1", "person2", "--force"])["from"], "person2");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    assert_eq!(photos_of(&sparks, "person1"), 6, "one tag in each photo");
}

/// Somebody in pieces, whom nobody may join but the operator.
#[test]
fn whoever_may_be_one_is_suggested_and_what_was_parted_is_not() {
    let sparks = Sparks::new();
    let album = sparks.synth(60, 12, &["--noise", "1.1", "--faces-per-photo", "1"]);
    let mut ingest = sparks.command(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"]);
    let output = ingest.env("SPARKS_FACES_CONSOLIDATION", "suggest").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sparks.events_of("PersonsMerged").len(), 0, "only suggested");
    let suggested = lines(&sparks.text(["persons", "suggest", "--json"]));
    let strong: Vec<&Value> = suggested.iter().filter(|join| join["evidence"] == "strong").collect();
    assert!(!strong.is_empty(), "{suggested:?}");
    assert!(strong[0]["grounds"]["distinction"].as_f64().unwrap() > 3.0, "{suggested:?}");
    let words = sparks.text(["persons", "suggest"]);
    let pair = [strong[0]["into"].as_str().unwrap(), strong[0]["from"].as_str().unwrap()];
    assert!(words.contains(&format!("sparks persons merge {} {}", pair[0], pair[1])), "{words}");

    let merged = sparks.json(["persons", "merge", pair[0], pair[1]]);
    sparks.json(["persons", "unmerge", merged["event"].as_str().unwrap()]);
    // The machine joins the others, and never these two again.
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let alike = sparks.events_of("PersonsMerged");
    assert!(alike.iter().any(|event| event["event_data"]["grounds"]["alike"]["pairs"].is_u64()), "{alike:?}");
    let told = |event: &&Value| [&event["event_data"]["into"], &event["event_data"]["from"]] == [pair[0], pair[1]];
    assert_eq!(alike.iter().filter(told).count(), 1, "{alike:?}");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
}

#[test]
fn a_folder_without_data_says_so() {
    let sparks = Sparks::new();
    for action in [&["persons", "suggest"][..], &["persons", "merges"], &["persons", "merge", "person1", "person2"]] {
        let output = sparks.run(action);
        assert_eq!(output.status.code(), Some(2), "{action:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("sparks ingest"), "{action:?}");
    }
}
