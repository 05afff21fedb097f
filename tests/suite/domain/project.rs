//! What events make of the platform's table.

use serde_json::json;
use sparks_domain::{
    Event, Key, Merges, Mutation, PersonRenamed, Presence, Projection, RejectCode::Damaged, Seq, TaggingKey, Timestamp,
    Version,
};

use crate::{
    story::{BEACH, Photo, ada, good, happened, person, photo, processed, state_of},
    table::{Table, fields},
};

const NOON: &str = "2025-08-01T12:00:00.000Z";

fn noon() -> Timestamp {
    NOON.parse().unwrap()
}

fn large() -> Projection {
    Projection { tagging_key: TaggingKey::Large }
}

/// The mutations of all events, on a photo nobody knew.
fn projected(photo: Photo) -> Vec<Mutation> {
    photo.happened().iter().flat_map(|event| large().project(None, event, noon(), &Merges::default())).collect()
}

#[track_caller]
fn find(mutations: &[Mutation], key: &Key) -> Mutation {
    let found: Vec<_> = mutations.iter().filter(|mutation| mutation.key() == key).collect();
    assert_eq!(found.len(), 1, "{key} in {mutations:?}");
    found[0].clone()
}

#[test]
fn an_image_must_be_there_and_only_what_is_ours_is_set() {
    let image = find(&projected(photo(BEACH).of([good().like(3, 0.9)])), &Key::image(&BEACH.parse().unwrap(), &ada()));
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
fn a_photo_of_nobody_has_an_empty_list_of_persons_and_no_tagging() {
    let mutations = projected(photo(BEACH));
    let [Mutation::Set { attributes, .. }] = mutations.as_slice() else { panic!("{mutations:?}") };
    assert_eq!(attributes["persons"], json!([]));
}

#[test]
fn every_person_is_tagged_once() {
    let faces = [good().like(11, 0.9), good().like(2, 0.9), good().like(11, 0.8)];
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    table.commit(&projected(photo(BEACH).of(faces)));
    assert_eq!(table.sort_keys(BEACH), ["PERSON#person11", "PERSON#person2", "UPLOADED_BY#ada@example.org"]);
    let image = &table.rows[&Key::image(&BEACH.parse().unwrap(), &ada())];
    assert_eq!(image["persons"], json!(["person2", "person11"]));
}

#[test]
fn a_tagging_shows_the_large_variant_or_the_original() {
    let events = photo(BEACH).of([good().like(2, 0.9)]).happened();
    let key = Key::tagging(&BEACH.parse().unwrap(), person(2));
    let shown = |tagging_key| {
        let mutations = Projection { tagging_key }.project(None, &events[0], noon(), &Merges::default());
        let row = find(&mutations, &key).apply(None).expect("a row");
        assert_eq!(row["images"]["medium"], json!(format!("processed/{BEACH}_medium.webp")));
        row["s3Key"].clone()
    };
    assert_eq!(shown(TaggingKey::Large), json!(format!("processed/{BEACH}_large.webp")));
    assert_eq!(shown(TaggingKey::Original), json!(format!("originals/{BEACH}.jpg")));
    assert_eq!(shown(TaggingKey::default()), shown(TaggingKey::Large));
}

#[test]
fn a_tagging_is_set_whether_or_not_it_is_there() {
    let mutations = projected(photo(BEACH).of([good().like(2, 0.9)]));
    let tagging = find(&mutations, &Key::tagging(&BEACH.parse().unwrap(), person(2)));
    assert!(matches!(tagging, Mutation::Set { presence: Presence::Any, .. }), "{tagging:?}");
}

#[test]
fn persons_no_longer_in_a_newer_version_lose_their_tagging() {
    let first = photo(BEACH).of([good().like(1, 0.9), good().like(2, 0.9)]).happened();
    let second = photo(BEACH).version("v2").of([good().like(2, 0.9), good().like(3, 0.9)]).happened();
    let image = BEACH.parse().unwrap();
    let mut table = Table::of_platform([&image]);
    table.commit(&large().project(None, &first[0], noon(), &Merges::default()));
    let before = state_of(&image, &first);
    table.commit(&large().project(before.as_ref(), &second[0], noon(), &Merges::default()));
    assert_eq!(
        table.sort_keys(BEACH),
        ["PERSON#person2", "PERSON#person3", "UPLOADED_BY#ada@example.org"],
        "{}",
        table.text()
    );
}

#[test]
fn the_same_holds_across_a_rejected_version_between() {
    let first = photo(BEACH).of([good().like(1, 0.9)]).happened();
    let rejected = happened(photo(BEACH).version("v2").rejected(Damaged));
    let third = photo(BEACH).version("v3").happened();
    let before = state_of(&BEACH.parse().unwrap(), &[first, rejected].concat());
    let mutations = large().project(before.as_ref(), &third[0], noon(), &Merges::default());
    let gone = Mutation::Delete { key: Key::tagging(&BEACH.parse().unwrap(), person(1)) };
    assert!(mutations.contains(&gone), "{mutations:?}");
}

#[test]
fn a_superseded_event_leaves_only_what_the_newer_one_has_too() {
    let first = photo(BEACH).of([good().like(1, 0.9), good().like(2, 0.9)]).happened();
    let second = photo(BEACH).version("v2").of([good().like(2, 0.9)]).happened();
    let image = BEACH.parse().unwrap();
    let now = state_of(&image, &[first.clone(), second].concat()).unwrap();
    let gone = large().superseded(&now, processed(&first), &Merges::default());
    assert_eq!(gone, [Mutation::Delete { key: Key::tagging(&image, person(1)) }]);
}

#[test]
fn a_rejected_photo_changes_no_row() {
    let rejected = happened(photo(BEACH).rejected(Damaged));
    assert_eq!(large().project(None, &rejected[0], noon(), &Merges::default()), []);
}

#[test]
fn a_new_person_must_not_be_there_yet() {
    let mutations = projected(photo(BEACH).of([good()]).counter(8));
    let row = find(&mutations, &Key::person(person(9)));
    assert!(matches!(row, Mutation::Set { presence: Presence::Absent, .. }), "{row:?}");
}

#[test]
fn the_counter_is_at_least_the_highest_new_number() {
    let mutations = projected(photo(BEACH).of([good(), good()]).counter(8).taken([9, 11]));
    let counter = find(&mutations, &Key::counter());
    let limit = |there: Option<_>| counter.apply(there).expect("a row")["limit"].to_string();
    assert_eq!(limit(None), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 8 })))), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 12 })))), "12");
    assert_eq!(limit(Some(fields(json!({ "limit": 40 })))), "40");
    assert_eq!(limit(Some(fields(json!({ "limit": 9 })))), "12", "numbers, not texts");
}

#[test]
fn the_counter_stays_where_nobody_is_new() {
    let mutations = projected(photo(BEACH).of([good().like(2, 0.9)]).counter(8));
    assert!(mutations.iter().all(|mutation| *mutation.key() != Key::counter()), "{mutations:?}");
    assert!(mutations.iter().all(|mutation| *mutation.key() != Key::person(person(2))), "{mutations:?}");
}

#[test]
fn a_new_name_changes_the_display_name_only() {
    let (from, to) = ("person4".into(), "Ada".into());
    let renamed = PersonRenamed { v: Version, person: person(4), identity_seq: Seq(1), from, to };
    let mutations = large().project(None, &Event::PersonRenamed(renamed), noon(), &Merges::default());
    let expected = Mutation::Set {
        key: Key::new("PERSON#person4", "person4"),
        presence: Presence::Required,
        attributes: fields(json!({ "displayName": "Ada" })),
        at_least: fields(json!({})),
    };
    assert_eq!(mutations, [expected]);
}
