//! Rows that events change in the platform's table.

use serde_json::json;
use sparks_domain::{
    Event, Key, Merges, Mutation, PersonRegistry, PersonRenamed, PhotoState, Presence, Projection, ProjectionContext,
    RejectCode::Damaged, Seq, TaggingKey, Timestamp, UndoneMerge, Version,
};

use crate::{
    given_when_then::{BEACH, Photo, ada, events_of, good_face, merged, person, photo, recorded, state_of},
    golden_events::{every_event, persons_allocated, photo_processed},
    memory_table::{Table, fields},
};

const NOON: &str = "2025-08-01T12:00:00.000Z";

fn noon() -> Timestamp {
    NOON.parse().unwrap()
}

fn large() -> Projection {
    Projection { tagging_key: TaggingKey::Large }
}

/// Returns the rows that an event about this photo changes.
fn project(before: Option<&PhotoState>, event: &Event) -> Vec<Mutation> {
    let merges = Merges::default();
    large().project(event, &ProjectionContext { before, ..ProjectionContext::new(noon(), &merges) })
}

/// Returns the rows that all events of a new photo change.
fn projected(photo: Photo) -> Vec<Mutation> {
    photo.into_events().iter().flat_map(|event| project(None, event)).collect()
}

#[track_caller]
fn find(mutations: &[Mutation], key: &Key) -> Mutation {
    let found: Vec<_> = mutations.iter().filter(|mutation| mutation.key() == key).collect();
    assert_eq!(found.len(), 1, "{key} in {mutations:?}");
    found[0].clone()
}

#[test]
fn image_row_must_exist_and_only_own_attributes_are_set() {
    let image = find(
        &projected(photo(BEACH).with_faces([good_face().candidate(3, 0.9)])),
        &Key::image(&BEACH.parse().unwrap(), &ada()),
    );
    let Mutation::Set { presence, attributes, at_least, .. } = image else { panic!("{image:?}") };
    assert_eq!(presence, Presence::Required);
    let variant = |name: &str| format!("processed/{BEACH}_{name}.webp");
    let ours = json!({
        "images": { "large": variant("large"), "medium": variant("medium"), "processedAt": NOON },
        "persons": ["person3"],
    });
    assert_eq!(attributes, fields(ours));
    assert_eq!(at_least, fields(json!({ "lastModified": NOON })));
}

#[test]
fn photo_without_persons_has_an_empty_list_and_no_tags() {
    let mutations = projected(photo(BEACH));
    let [Mutation::Set { attributes, .. }] = mutations.as_slice() else { panic!("{mutations:?}") };
    assert_eq!(attributes["persons"], json!([]));
}

#[test]
fn every_person_is_tagged_once() {
    let faces = [good_face().candidate(11, 0.9), good_face().candidate(2, 0.9), good_face().candidate(11, 0.8)];
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    table.commit(&projected(photo(BEACH).with_faces(faces)));
    assert_eq!(table.sort_keys(BEACH), ["PERSON#person11", "PERSON#person2", "UPLOADED_BY#ada@example.org"]);
    let image = &table.rows[&Key::image(&BEACH.parse().unwrap(), &ada())];
    assert_eq!(image["persons"], json!(["person2", "person11"]));
}

#[test]
fn tagging_key_is_the_large_variant_or_the_original() {
    let events = photo(BEACH).with_faces([good_face().candidate(2, 0.9)]).into_events();
    let key = Key::tagging(&BEACH.parse().unwrap(), person(2));
    let s3_key = |tagging_key| {
        let merges = Merges::default();
        let mutations = Projection { tagging_key }.project(&events[0], &ProjectionContext::new(noon(), &merges));
        let row = find(&mutations, &key).apply(None).expect("a row");
        assert_eq!(row["images"]["medium"], json!(format!("processed/{BEACH}_medium.webp")));
        row["s3Key"].clone()
    };
    assert_eq!(s3_key(TaggingKey::Large), json!(format!("processed/{BEACH}_large.webp")));
    assert_eq!(s3_key(TaggingKey::Original), json!(format!("originals/{BEACH}.jpg")));
    assert_eq!(s3_key(TaggingKey::default()), s3_key(TaggingKey::Large));
}

#[test]
fn tagging_row_needs_no_condition() {
    let mutations = projected(photo(BEACH).with_faces([good_face().candidate(2, 0.9)]));
    let tagging = find(&mutations, &Key::tagging(&BEACH.parse().unwrap(), person(2)));
    assert!(matches!(tagging, Mutation::Set { presence: Presence::Any, .. }), "{tagging:?}");
}

#[test]
fn persons_missing_in_a_newer_version_lose_their_tag() {
    let first = photo(BEACH).with_faces([good_face().candidate(1, 0.9), good_face().candidate(2, 0.9)]).into_events();
    let second = photo(BEACH)
        .version("v2")
        .with_faces([good_face().candidate(2, 0.9), good_face().candidate(3, 0.9)])
        .into_events();
    let image = BEACH.parse().unwrap();
    let mut table = Table::of_platform([&image]);
    table.commit(&project(None, &first[0]));
    let before = state_of(&image, &first);
    table.commit(&project(before.as_ref(), &second[0]));
    assert_eq!(
        table.sort_keys(BEACH),
        ["PERSON#person2", "PERSON#person3", "UPLOADED_BY#ada@example.org"],
        "{}",
        table.text()
    );
}

#[test]
fn stale_tags_are_removed_after_a_rejected_version_too() {
    let first = photo(BEACH).with_faces([good_face().candidate(1, 0.9)]).into_events();
    let rejected = events_of(photo(BEACH).version("v2").rejected(Damaged));
    let third = photo(BEACH).version("v3").into_events();
    let before = state_of(&BEACH.parse().unwrap(), &[first, rejected].concat());
    let mutations = project(before.as_ref(), &third[0]);
    let removed = Mutation::Delete { key: Key::tagging(&BEACH.parse().unwrap(), person(1)) };
    assert!(mutations.contains(&removed), "{mutations:?}");
}

#[test]
fn rebuild_removes_tags_of_a_replaced_event() {
    let first = photo(BEACH).with_faces([good_face().candidate(1, 0.9), good_face().candidate(2, 0.9)]).into_events();
    let second = photo(BEACH).version("v2").with_faces([good_face().candidate(2, 0.9)]).into_events();
    let image = BEACH.parse().unwrap();
    let now = state_of(&image, &[first.clone(), second].concat()).unwrap();
    let removed = large().reproject(&recorded(1, &first[0], noon()), &now, &Merges::default());
    assert_eq!(removed, [Mutation::Delete { key: Key::tagging(&image, person(1)) }]);
}

#[test]
fn rejected_photo_changes_no_row() {
    let rejected = events_of(photo(BEACH).rejected(Damaged));
    assert_eq!(project(None, &rejected[0]), []);
}

#[test]
fn row_of_a_new_person_must_not_exist() {
    let mutations = projected(photo(BEACH).with_faces([good_face()]).counter(8));
    let row = find(&mutations, &Key::person(person(9)));
    assert!(matches!(row, Mutation::Set { presence: Presence::Absent, .. }), "{row:?}");
}

#[test]
fn counter_is_at_least_the_highest_new_number() {
    let mutations = projected(photo(BEACH).with_faces([good_face(), good_face()]).counter(8).taken_numbers([9, 11]));
    let counter = find(&mutations, &Key::counter());
    let limit = |there: Option<_>| counter.apply(there).expect("a row")["limit"].to_string();
    assert_eq!(limit(None), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 8 })))), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 12 })))), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 40 })))), "40");
    assert_eq!(limit(Some(fields(json!({ "limit": 9 })))), "12", "numbers, not texts");
}

#[test]
fn counter_is_unchanged_without_a_new_person() {
    let mutations = projected(photo(BEACH).with_faces([good_face().candidate(2, 0.9)]).counter(8));
    assert!(mutations.iter().all(|mutation| *mutation.key() != Key::counter()), "{mutations:?}");
    assert!(mutations.iter().all(|mutation| *mutation.key() != Key::person(person(2))), "{mutations:?}");
}

#[test]
fn renaming_changes_the_display_name_only() {
    let (from, to) = ("person4".into(), "Ada".into());
    let renamed = PersonRenamed { v: Version, person: person(4), identity_seq: Seq(1), from, to };
    let mutations = project(None, &Event::PersonRenamed(renamed));
    let expected = Mutation::Set {
        key: Key::new("PERSON#person4", "person4"),
        presence: Presence::Required,
        attributes: fields(json!({ "displayName": "Ada" })),
        at_least: fields(json!({})),
    };
    assert_eq!(mutations, [expected]);
}

/// The context of a golden event: every fact that any event reads.
#[test]
fn every_event_type_changes_exactly_the_rows_of_its_table_entry() {
    let merge = merged(3, 12, Seq(44));
    let mut registry = PersonRegistry::default();
    registry.evolve(&Event::PersonsAllocated(persons_allocated(true)), noon());
    let person12 = registry.get(person(12)).unwrap();
    let projected = recorded(17, &Event::PhotoProcessed(photo_processed(true)), noon());
    let before = PhotoState::evolve(None, Seq(17), &projected.event);
    let (merges, taggings) = (Merges::default(), [Key::tagging(&BEACH.parse().unwrap(), person(3))]);
    let users = [ada()];
    let context = ProjectionContext {
        before: before.as_ref(),
        projected: Some(&projected),
        taggings: &taggings,
        has_limit: true,
        persons: Some(&registry),
        undone: Some(UndoneMerge { merge: &merge, users: &users }),
        reinstated: Some(&person12),
        ..ProjectionContext::new(noon(), &merges)
    };
    let rows = |event: &Event| -> Vec<String> {
        let mutations = large().project(event, &context);
        let mut types: Vec<String> = mutations.iter().map(|mutation| row_type(mutation.key()).to_owned()).collect();
        types.dedup();
        types
    };
    let found = every_event(true).map(|event| format!("{}: {}", event.event_type(), rows(&event).join(" ")));
    assert_eq!(
        found,
        [
            "PhotoProcessed: IMAGE TAGGING",
            "PhotoRejected: ",
            "PersonsAllocated: PERSON COUNTER",
            "PersonRenamed: PERSON",
            "FacesReviewed: IMAGE TAGGING",
            "PersonsMerged: PERSON USER",
            "MergeUndone: PERSON USER",
            "PhotoDeleted: IMAGE TAGGING LIMIT",
            "ProfileProcessed: USER",
            "PersonsForgotten: PERSON",
            "PersonReinstated: PERSON",
            "PersonPictured: ",
            "NumbersReserved: COUNTER",
            "PersonAdopted: PERSON",
            "PhotoAdopted: IMAGE TAGGING",
            "LevelRaised: ",
        ]
    );
}

fn row_type(key: &Key) -> &'static str {
    match (key.pk.as_str(), key.sk.as_str()) {
        ("UNKNOWN_PERSONS", _) => "COUNTER",
        (pk, _) if pk.starts_with("PERSON#") => "PERSON",
        (pk, _) if pk.starts_with("LIMIT#") => "LIMIT",
        (_, sk) if sk.starts_with("PERSON#") => "TAGGING",
        (_, sk) if sk.starts_with("UPLOADED_BY#") => "IMAGE",
        _ => "USER",
    }
}
