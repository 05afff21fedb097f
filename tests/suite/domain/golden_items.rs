//! Every type of row, as the platform's API reads it.

use serde_json::json;
use sparks_domain::{Event, Item, Key, Merges, Projection, ProjectionContext, TaggingKey, Timestamp};

use crate::{
    given_when_then::{BEACH, ada, deletion, events_of, person},
    golden_events::{persons_allocated, photo_processed, profile_processed},
    golden_file,
    memory_table::{Table, fields},
};

/// Returns the table after the photo of the rich golden event, at a fixed time.
fn table(tagging_key: TaggingKey) -> Table {
    let when: Timestamp = "2025-08-01T09:24:28.957Z".parse().unwrap();
    let projection = Projection { tagging_key };
    let events = [Event::PersonsAllocated(persons_allocated(true)), Event::PhotoProcessed(photo_processed(true))];
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    for event in &events {
        table.commit(&projection.project(event, &ProjectionContext::new(when, &Merges::default())));
    }
    table
}

#[track_caller]
fn check(file: &str, key: Key, tagging_key: TaggingKey) {
    let attributes = table(tagging_key).rows.remove(&key).unwrap_or_else(|| panic!("{key} is missing"));
    golden_file::check(file, &Item { key, attributes }.into_json());
}

#[test]
fn image_row_matches_its_golden_file() {
    check("items/IMAGE.json", Key::image(&BEACH.parse().unwrap(), &ada()), TaggingKey::Large);
}

#[test]
fn person_row_matches_its_golden_file() {
    check("items/PERSON.json", Key::person(person(12)), TaggingKey::Large);
}

#[test]
fn tagging_row_with_large_variant_matches_its_golden_file() {
    check("items/TAGGING.large.json", Key::tagging(&BEACH.parse().unwrap(), person(12)), TaggingKey::Large);
}

#[test]
fn tagging_row_with_original_matches_its_golden_file() {
    check("items/TAGGING.original.json", Key::tagging(&BEACH.parse().unwrap(), person(3)), TaggingKey::Original);
}

/// A user after their profile picture was processed, and their limit after a photo of theirs was deleted.
#[test]
fn user_and_limit_rows_match_their_golden_files() {
    let when: Timestamp = "2025-08-01T09:24:28.957Z".parse().unwrap();
    let user = json!({
        "entityType": "USER",
        "email": ada(),
        "username": "ada",
        "profilePicture": "profiles/ada@example.org/1.jpg",
        "updatedAt": "2025-08-01T09:24:00.123Z",
    });
    let mut table = table(TaggingKey::Large);
    table.rows.insert(Key::user(&ada()), fields(user));
    table.rows.insert(Key::limit(&ada()), fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 499 })));
    let merges = Merges::default();
    let context = ProjectionContext { has_limit: true, ..ProjectionContext::new(when, &merges) };
    table.commit(&Projection::default().project(&Event::ProfileProcessed(profile_processed(true)), &context));
    table.commit(&Projection::default().project(&events_of(deletion(BEACH))[0], &context));
    for (file, key) in [("items/USER.json", Key::user(&ada())), ("items/DEFAULT_LIMIT.json", Key::limit(&ada()))] {
        let attributes = table.rows.remove(&key).unwrap();
        golden_file::check(file, &Item { key, attributes }.into_json());
    }
}

#[test]
fn counter_row_matches_its_golden_file() {
    check("items/UNKNOWN_PERSONS.json", Key::counter(), TaggingKey::Large);
}

#[test]
fn no_other_rows_are_written() {
    let table = table(TaggingKey::Large);
    let keys: Vec<_> = table.rows.keys().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            format!("{BEACH} / PERSON#person12"),
            format!("{BEACH} / PERSON#person3"),
            format!("{BEACH} / UPLOADED_BY#ada@example.org"),
            "PERSON#person12 / person12".into(),
            "PERSON#person14 / person14".into(),
            "UNKNOWN_PERSONS / UNKNOWN_PERSONS".into(),
        ]
    );
}
