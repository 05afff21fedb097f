//! `sparks persons`: suggestions, merges, and undoing merges.

use serde_json::{Value, json};

use crate::sparks::Sparks;

/// Returns a data folder with photos of one face each, of three identities.
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
fn a_merge_is_applied_listed_and_undone_exactly() {
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
    assert_eq!(sparks.run(["query", "person", "person3"]).status.code(), Some(1), "person3 has no row");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
    assert!(!sparks.data().join("objects/persons/person3.jpg").exists());

    let event = merged["event"].as_str().unwrap();
    let listed = lines(&sparks.text(["persons", "merges", "--json"]));
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["event"], &listed[0]["holds"]), (&json!(event), &json!(true)));
    assert_eq!((&listed[0]["into"], &listed[0]["from"]), (&json!("person1"), &json!("person3")));
    assert_eq!(listed[0]["grounds"], "told");
    let log = sparks.text(["events"]);
    let line = log.lines().find(|line| line.contains("PersonsMerged")).expect("the merge is in the log");
    assert!(line.contains("person3 into person1"), "{line}");

    let unmerged = sparks.json(["persons", "unmerge", event]);
    assert_eq!((&unmerged["person"], &unmerged["photos"]), (&json!("person3"), &json!(photos[0] + photos[1])));
    assert_eq!(sparks.text(["items"]), items, "the rows are identical");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
    assert_eq!(lines(&sparks.text(["persons", "merges", "--json"]))[0]["holds"], false);
    let undone = sparks.events_of("MergeUndone");
    assert_eq!(undone[0]["event_data"]["merge"], event);
    assert!(sparks.text(["events"]).lines().any(|line| line.contains("MergeUndone")));

    // A second unmerge changes nothing.
    sparks.json(["persons", "unmerge", event]);
    assert_eq!((sparks.text(["items"]), sparks.events_of("MergeUndone").len()), (items, 1));
}

#[test]
fn the_output_of_a_merge_names_the_command_that_undoes_it() {
    let sparks = album();
    let text = sparks.command(["persons", "merge", "person1", "person2"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("person2 merged into person1"), "{text}");
    let command = text.split('`').nth(1).expect("a command in backticks");
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(sparks.text(&arguments).contains("person2 is a separate person again"), "{command}");
    let merges = sparks.text(["persons", "merges"]);
    assert!(merges.contains("person2 into person1") && merges.contains("undone"), "{merges}");
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_the_remedy() {
    let sparks = album();
    let event = sparks.events()[0]["event_id"].as_str().unwrap().to_owned();
    sparks.json(["persons", "merge", "person1", "person2"]);
    let items = sparks.text(["items"]);
    for (args, expected) in [
        (vec!["merge", "person1", "person99"], "there is no person99; list persons with `sparks query persons`"),
        (vec!["merge", "person3", "person3"], "person3 is the same person as person3 already"),
        (
            vec!["merge", "person2", "person1"],
            "person2 is the same person as person1 already; list merges with `sparks persons merges`",
        ),
        (vec!["merge", "person1", "Bob"], "is not a person ID (person1, person2, ...)"),
        (vec!["unmerge", &event], "is not a merge; list merges with `sparks persons merges`"),
        (vec!["unmerge", "12345678-1234-5234-8234-123456789012"], "list merges with `sparks persons merges`"),
        (vec!["unmerge", "nonsense"], "is not an event ID"),
    ] {
        let output = sparks.run(["persons"].iter().chain(&args));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
    }
    assert_eq!(sparks.text(["items"]), items);
    assert_eq!(sparks.events_of("PersonsMerged").len(), 1);
}

#[test]
fn merging_persons_of_one_photo_needs_force() {
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

/// Each identity is split into several persons, which the operator may merge.
#[test]
fn likely_duplicates_are_suggested_but_not_once_unmerged() {
    let sparks = Sparks::new();
    let album = sparks.synth(60, 12, &["--noise", "1.1", "--faces-per-photo", "1"]);
    let mut ingest = sparks.command(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--json"]);
    let output = ingest.env("SPARKS_FACES_CONSOLIDATION", "suggest").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sparks.events_of("PersonsMerged").len(), 0, "suggested, not merged");
    let suggested = lines(&sparks.text(["persons", "suggest", "--json"]));
    let strong: Vec<&Value> = suggested.iter().filter(|merge| merge["evidence"] == "strong").collect();
    assert!(!strong.is_empty(), "{suggested:?}");
    assert!(strong[0]["grounds"]["distinction"].as_f64().unwrap() > 3.0, "{suggested:?}");
    let text = sparks.text(["persons", "suggest"]);
    let pair = [strong[0]["into"].as_str().unwrap(), strong[0]["from"].as_str().unwrap()];
    assert!(text.contains(&format!("sparks persons merge {} {}", pair[0], pair[1])), "{text}");

    let merged = sparks.json(["persons", "merge", pair[0], pair[1]]);
    sparks.json(["persons", "unmerge", merged["event"].as_str().unwrap()]);
    // Consolidation merges the others, and never these two again.
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let merges = sparks.events_of("PersonsMerged");
    assert!(merges.iter().any(|event| event["event_data"]["grounds"]["alike"]["pairs"].is_u64()), "{merges:?}");
    let is_pair = |event: &&Value| [&event["event_data"]["into"], &event["event_data"]["from"]] == [pair[0], pair[1]];
    assert_eq!(merges.iter().filter(is_pair).count(), 1, "{merges:?}");
    assert_eq!(sparks.json(["verify"])["clean"], true);
    sparks.assert_crops();
}

#[test]
fn commands_without_a_data_folder_name_the_remedy() {
    let sparks = Sparks::new();
    for action in [&["persons", "suggest"][..], &["persons", "merges"], &["persons", "merge", "person1", "person2"]] {
        let output = sparks.run(action);
        assert_eq!(output.status.code(), Some(2), "{action:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("sparks ingest"), "{action:?}");
    }
}
