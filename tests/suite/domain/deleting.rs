//! Photos that are gone, and what comes after them.

use serde_json::json;
use sparks_domain::{
    Attributes, Command, Deletion, DeletionCause, Difference, Event, FaceId, ImageId, Key, Merges, Mutation, Outcome,
    PhotoDeleted, PhotoState, Projection, RejectCode::Damaged, Seq, Timestamp, drift,
};

use crate::{
    story::{
        BEACH, PARTY, Photo, ada, deletion, given, good, happened, merged, nothing, person, photo, processed, removal,
        small, state_of,
    },
    table::{Table, fields},
};

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

fn noon() -> Timestamp {
    "2025-08-01T12:00:00.000Z".parse().unwrap()
}

/// The first version of a photo of persons 3 and 7.
fn pair() -> Photo {
    photo(BEACH).sequencer("0B").of([good().like(7, 0.95), good().like(3, 0.95)]).counter(9)
}

/// It was taken and is gone.
fn gone() -> Vec<Event> {
    let taken = pair().happened();
    let deleted = given(taken.clone()).when(deletion(BEACH)).events();
    [taken, deleted].concat()
}

#[track_caller]
fn tombstone(events: &[Event]) -> &PhotoDeleted {
    match events.last() {
        Some(Event::PhotoDeleted(deleted)) => deleted,
        other => panic!("{other:?} is no tombstone"),
    }
}

#[test]
fn a_deleted_photo_leaves_a_tombstone_that_says_what_it_was() {
    given(pair().happened()).when(deletion(BEACH)).then(["deleted: Asked of person3, person7"]);
    let known_by = vec![FaceId { image: PARTY.parse().unwrap(), n: 4 }];
    let asked = Deletion { known_by: known_by.clone(), ..deletion(BEACH) };
    let events = given(pair().happened()).when(asked).events();
    let deleted = tombstone(&events);
    assert_eq!((deleted.version.as_str(), deleted.sequencer.as_deref()), ("v1", Some("0B")));
    assert_eq!((&deleted.uploader, deleted.follows), (&Some(ada()), Some(Seq(1))));
    assert_eq!((&deleted.objects, &deleted.known_by), (&vec![format!("originals/{BEACH}.jpg")], &known_by));
    assert!(!events[0].is_identity(), "who is known changes by other events");
}

#[test]
fn a_deleted_photo_shows_nothing_and_keeps_the_numbers_of_its_faces() {
    let state = state_of(&beach(), &gone()).expect("a state");
    let expected = PhotoState {
        version: "v1".into(),
        sequencer: Some("0B".into()),
        outcome: Outcome::Deleted,
        seq: Seq(2),
        shows: None,
        faces: 2,
        persons: vec![],
        adopted: vec![],
    };
    assert_eq!(state, expected);
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<PhotoState>(&text).unwrap(), state, "{text}");
}

#[test]
fn what_was_deleted_is_not_taken_again() {
    given(gone()).when(pair()).then_refused("the photo was deleted");
    given(gone()).when(pair().rejected(Damaged)).then_refused("the photo was deleted");
    // Another content, which went up before the one that is gone.
    for earlier in ["0A", "0B"] {
        let late = photo(BEACH).version("v0").sequencer(earlier);
        given(gone()).when(late.clone()).then_refused("the photo was deleted");
        given(gone()).when(late.rejected(Damaged)).then_refused("the photo was deleted");
    }
    let nameless = photo(BEACH).happened();
    let deleted = given(nameless.clone()).when(deletion(BEACH)).events();
    given([nameless, deleted].concat()).when(photo(BEACH)).then_refused("the photo was deleted");
}

#[test]
fn a_later_version_is_a_new_photo_whose_faces_are_numbered_on() {
    for later in [photo(BEACH).version("v2").sequencer("0C"), photo(BEACH).sequencer("0C"), photo(BEACH).version("v2")]
    {
        let events = given(gone()).when(later.of([good(), small()]).counter(9)).events();
        let [Event::PersonsAllocated(new), Event::PhotoProcessed(photo)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((photo.first_face, photo.follows), (2, Some(Seq(2))));
        assert_eq!(new.persons[0].face, FaceId { image: beach(), n: 2 });
        let state = state_of(&beach(), &[gone(), events.clone()].concat()).expect("a state");
        assert_eq!((state.outcome, state.shows, state.faces), (Outcome::Processed, Some(Seq(4)), 4));
        assert_eq!(state.persons, [person(10)], "nobody of before");
    }
    given(gone()).when(photo(BEACH).version("v2").sequencer("0C").rejected(Damaged)).then(["rejected: Damaged"]);
}

#[test]
fn what_comes_back_may_go_again_by_an_event_of_its_own() {
    let back = given(gone()).when(pair().version("v2").sequencer("0C")).events();
    let history = [gone(), back].concat();
    let again = given(history.clone()).when(deletion(BEACH)).events();
    assert_eq!(tombstone(&again).follows, Some(Seq(3)));
    assert_eq!(tombstone(&again).version, "v2");
    assert!(history.iter().all(|before| before.id() != again[0].id()), "an ID that was there before");
}

#[test]
fn deleting_twice_is_deleting_once_unless_the_row_is_back() {
    for again in [Deletion { uploader: None, ..deletion(BEACH) }, removal(BEACH, None), removal(BEACH, Some("0D"))] {
        given(gone()).when(again).then_refused("already committed by event 2");
    }
    let again = given(gone()).when(deletion(BEACH)).events();
    assert_eq!(tombstone(&again).persons, [], "nobody is in a photo that is gone");
    assert_ne!(again[0].id(), gone()[1].id());
}

#[test]
fn a_photo_that_nobody_knew_may_be_deleted() {
    given(nothing()).when(deletion(BEACH)).then(["deleted: Asked of "]);
    let bare = happened(deletion(BEACH));
    assert_eq!((tombstone(&bare).version.as_str(), &tombstone(&bare).sequencer), ("", &None));
    let seen = happened(Deletion { version: Some("v1".into()), ..deletion(BEACH) });
    given(seen.clone()).when(photo(BEACH)).then_refused("the photo was deleted");
    given(seen).when(photo(BEACH).version("v2")).then(["processed: nobody"]);
}

#[test]
fn a_rejected_photo_may_be_deleted() {
    let history = happened(photo(BEACH).rejected(Damaged));
    given(history.clone()).when(deletion(BEACH)).then(["deleted: Asked of "]);
    let deleted = given(history.clone()).when(deletion(BEACH)).events();
    given([history, deleted].concat()).when(photo(BEACH)).then_refused("the photo was deleted");
}

#[test]
fn an_original_removed_before_the_last_upload_changes_nothing() {
    given(pair().happened()).when(removal(BEACH, Some("0A"))).then_refused("a newer version was committed by event 1");
    for later in [Some("0C"), Some("0B"), None] {
        given(pair().happened()).when(removal(BEACH, later)).then(["deleted: OriginalRemoved of person3, person7"]);
    }
    // Whoever asks, asks now.
    let asked = Deletion { sequencer: Some("0A".into()), ..deletion(BEACH) };
    given(pair().happened()).when(asked).then(["deleted: Asked of person3, person7"]);
}

#[test]
fn what_went_up_before_the_original_was_removed_is_gone_with_it() {
    let taken = pair().happened();
    let removed = given(taken.clone()).when(removal(BEACH, Some("0D"))).events();
    assert_eq!(tombstone(&removed).sequencer.as_deref(), Some("0D"), "the later of both");
    let history = [taken, removed].concat();
    let late = photo(BEACH).version("v2").sequencer("0C");
    given(history.clone()).when(late).then_refused("the photo was deleted");
    given(history).when(photo(BEACH).sequencer("0E")).then(["processed: nobody"]);
}

#[test]
fn a_tombstone_buries_what_went_up_before_it() {
    let state = state_of(&beach(), &gone()).expect("a state");
    for (version, sequencer, is_buried) in [
        (Some("v1"), None, true),
        (Some("v1"), Some("0B"), true),
        (Some("v0"), Some("0A"), true),
        (Some("v1"), Some("0C"), false),
        (Some("v2"), Some("0C"), false),
        (Some("v2"), None, false),
        (None, Some("0A"), true),
        (None, Some("0C"), false),
        (None, None, false), // the object itself will tell
    ] {
        assert_eq!(state.buries(version, sequencer), is_buried, "{version:?} {sequencer:?}");
    }
    let alive = state_of(&beach(), &pair().happened()).expect("a state");
    assert!(!alive.buries(Some("v1"), Some("0A")), "nobody deleted it");
}

/// The platform's table with the photo in it, its owner's limit, and a tagging that somebody else made.
fn table() -> Table {
    let mut table = Table::of_platform([&beach()]);
    for event in pair().happened() {
        table.commit(&Projection::default().project(None, &event, noon(), &Merges::default()));
    }
    table.rows.insert(Key::limit(&ada()), fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 499, "note": 1.5 })));
    table.rows.insert(Key::new(BEACH, "PERSON#somebody"), fields(json!({ "entityType": "TAGGING#somebody" })));
    table
}

fn taggings(table: &Table) -> Vec<Key> {
    table.rows.keys().filter(|key| key.pk == BEACH && key.sk.starts_with("PERSON#")).cloned().collect()
}

fn deleted(command: impl Into<Command>) -> PhotoDeleted {
    tombstone(&given(pair().happened()).when(command).events()).clone()
}

#[test]
fn deleting_takes_the_row_and_the_taggings_and_gives_the_upload_back() {
    let mut table = table();
    let mutations = Projection::default().deleted(&deleted(deletion(BEACH)), taggings(&table), true);
    assert!(matches!(&mutations[0], Mutation::Take { key } if *key == Key::image(&beach(), &ada())), "{mutations:?}");
    assert_eq!(mutations.len(), 5, "{mutations:?}");
    table.commit(&mutations);
    let left: Vec<_> = table.rows.iter().collect();
    let limit = fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 500, "note": 1.5 }));
    assert_eq!(left, [(&Key::limit(&ada()), &limit)]);
}

#[test]
fn where_there_is_no_limit_nothing_is_given_back() {
    let mut table = table();
    table.rows.remove(&Key::limit(&ada()));
    let mutations = Projection::default().deleted(&deleted(deletion(BEACH)), taggings(&table), false);
    table.commit(&mutations);
    assert_eq!(table.text(), "");
}

#[test]
fn row_and_limit_are_the_platforms_where_the_original_was_removed() {
    let before = table();
    for has_limit in [true, false] {
        for gone in [removal(BEACH, None), Deletion { uploader: Some(ada()), ..removal(BEACH, None) }] {
            let mut table = before.clone();
            table.commit(&Projection::default().deleted(&deleted(gone), taggings(&table), has_limit));
            let left: Vec<_> = table.rows.keys().cloned().collect();
            assert_eq!(left, [Key::image(&beach(), &ada()), Key::limit(&ada())]);
            assert_eq!(table.rows[&Key::limit(&ada())], before.rows[&Key::limit(&ada())]);
        }
    }
}

#[test]
fn a_photo_without_a_row_gives_nothing_back() {
    let rowless = deleted(Deletion { uploader: None, ..deletion(BEACH) });
    let tagging = Key::tagging(&beach(), person(3));
    let mutations = Projection::default().deleted(&rowless, vec![tagging.clone()], true);
    assert_eq!(mutations, [Mutation::Delete { key: tagging }]);
}

#[test]
fn a_deleted_photo_must_not_have_left_a_tagging_behind() {
    let now = state_of(&beach(), &gone()).expect("a state");
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(2, 7, Seq(4))));
    let stale = Projection::default().superseded(&now, processed(&pair().happened()), &merges);
    let tagging = |number| Mutation::Delete { key: Key::tagging(&beach(), person(number)) };
    assert_eq!(stale, [tagging(2), tagging(3), tagging(7)], "nor one of whoever they were taken for");
}

#[test]
fn the_event_alone_changes_no_row() {
    let event = Event::PhotoDeleted(deleted(deletion(BEACH)));
    assert_eq!(Projection::default().project(None, &event, noon(), &Merges::default()), []);
}

fn add(amount: i64) -> Mutation {
    Mutation::Add { key: Key::limit(&ada()), attribute: "limit".into(), amount }
}

#[test]
fn a_row_to_be_taken_is_stale_and_a_sum_cannot_be_seen() {
    let take = Mutation::Take { key: Key::counter() };
    assert_eq!(drift(&take, Some(&Attributes::new())), [Difference::Stale(Key::counter())]);
    assert_eq!(drift(&take, None), []);
    assert_eq!(take.apply(Some(Attributes::new())), None);
    assert_eq!(drift(&add(1), Some(&fields(json!({ "limit": 1 })))), []);
    assert_eq!(drift(&add(1), None), []);
    assert!(take.requires_row() && add(1).requires_row());
}

#[test]
fn sums_are_spelled_as_one_would_write_them() {
    for (before, amount, after) in [
        ("499", 1, "500"),
        ("-1", 1, "0"),
        ("500", -1, "499"),
        ("1.5", 1, "2.5"),
        ("1.50", 1, "2.5"),
        ("\"499\"", 1, "\"499\""), // no number
        ("null", 1, "null"),
    ] {
        let row: Attributes = serde_json::from_str(&format!(r#"{{"limit":{before},"theirs":1.50}}"#)).unwrap();
        let sum = add(amount).apply(Some(row)).expect("a row");
        assert_eq!(serde_json::to_string(&sum).unwrap(), format!(r#"{{"limit":{after},"theirs":1.50}}"#));
    }
    assert_eq!(add(1).apply(None), None, "where there is no row there is no sum");
    assert_eq!(add(1).apply(Some(fields(json!({ "a": 1 })))), Some(fields(json!({ "a": 1 }))));
    let huge = add(1).apply(Some(fields(json!({ "limit": i64::MAX })))).expect("a row");
    assert!(huge["limit"].as_f64() >= Some(9.2e18), "{huge:?}");
}

#[test]
fn the_cause_says_whose_the_rest_is() {
    assert_eq!(deleted(deletion(BEACH)).cause, DeletionCause::Asked);
    assert_eq!(deleted(removal(BEACH, None)).cause, DeletionCause::OriginalRemoved);
}
