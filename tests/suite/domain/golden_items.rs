//! Every shape of row, as the platform's API reads it.

use serde_json::json;
use sparks_domain::{Event, Item, Key, Merges, Projection, TaggingKey, Timestamp};

use crate::{
    golden,
    golden_events::{persons_allocated, photo_processed, profile_processed},
    story::{BEACH, ada, deletion, happened, person},
    table::{Table, fields},
};

/// The table after the photo of the rich golden event, at a fixed time.
fn table(tagging_key: TaggingKey) -> Table {
    let when: Timestamp = "2025-08-01T09:24:28.957Z".parse().unwrap();
    let projection = Projection { tagging_key };
    let events = [Event::PersonsAllocated(persons_allocated(true)), Event::PhotoProcessed(photo_processed(true))];
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    for event in &events {
        table.commit(&projection.project(None, event, when, &Merges::default()));
    }
    table
}

#[track_caller]
fn check(file: &str, key: Key, tagging_key: TaggingKey) {
    let attributes = table(tagging_key).rows.remove(&key).unwrap_or_else(|| panic!("{key} is missing"));
    golden::check(file, &Item { key, attributes }.into_json());
}

#[test]
fn an_image_after_processing() {
    check("items/IMAGE.json", Key::image(&BEACH.parse().unwrap(), &ada()), TaggingKey::Large);
}

#[test]
fn a_person() {
    check("items/PERSON.json", Key::person(person(12)), TaggingKey::Large);
}

#[test]
fn a_tagging_with_the_large_variant() {
    check("items/TAGGING.large.json", Key::tagging(&BEACH.parse().unwrap(), person(12)), TaggingKey::Large);
}

#[test]
fn a_tagging_with_the_original() {
    check("items/TAGGING.original.json", Key::tagging(&BEACH.parse().unwrap(), person(3)), TaggingKey::Original);
}

/// A user after their picture was looked at, and their limit after a photo of theirs was deleted.
#[test]
fn a_user_and_their_limit() {
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
    let event = Event::ProfileProcessed(profile_processed(true));
    table.commit(&Projection::default().project(None, &event, when, &Merges::default()));
    let Some(Event::PhotoDeleted(deleted)) = happened(deletion(BEACH)).pop() else { panic!("no tombstone") };
    table.commit(&Projection::default().deleted(&deleted, Vec::new(), true));
    for (file, key) in [("items/USER.json", Key::user(&ada())), ("items/DEFAULT_LIMIT.json", Key::limit(&ada()))] {
        let attributes = table.rows.remove(&key).unwrap();
        golden::check(file, &Item { key, attributes }.into_json());
    }
}

#[test]
fn the_counter() {
    check("items/UNKNOWN_PERSONS.json", Key::counter(), TaggingKey::Large);
}

#[test]
fn there_are_no_rows_of_any_other_shape() {
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
