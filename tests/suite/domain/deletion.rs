//! Deletion of photos, and uploads after it.

use serde_json::json;
use sparks_domain::{
    Attributes, Command, Deletion, DeletionCause, Difference, Event, FaceId, ImageId, Key, Merges, Mutation,
    PhotoDeleted, PhotoState, PhotoStatus, Projection, ProjectionContext, RejectCode::Damaged, Seq, Timestamp, drift,
};

use crate::{
    given_when_then::{
        BEACH, PARTY, Photo, ada, deletion, events_of, given, good_face, merged, no_events, person, photo, project,
        recorded, removal, small_face, state_of,
    },
    memory_table::{Table, fields},
};

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

fn noon() -> Timestamp {
    "2025-08-01T12:00:00.000Z".parse().unwrap()
}

/// The first version of a photo of persons 3 and 7.
fn pair() -> Photo {
    photo(BEACH).sequencer("0B").with_faces([good_face().candidate(7, 0.95), good_face().candidate(3, 0.95)]).counter(9)
}

/// It was processed and deleted.
fn deleted_history() -> Vec<Event> {
    let processed = pair().into_events();
    let deleted = given(processed.clone()).when(deletion(BEACH)).events();
    [processed, deleted].concat()
}

#[track_caller]
fn deletion_event(events: &[Event]) -> &PhotoDeleted {
    match events.last() {
        Some(Event::PhotoDeleted(deleted)) => deleted,
        other => panic!("{other:?} is not a deletion"),
    }
}

#[test]
fn deletion_event_records_version_owner_and_objects() {
    given(pair().into_events()).when(deletion(BEACH)).then(["deleted: Requested of person3, person7"]);
    let known_by = vec![FaceId { image: PARTY.parse().unwrap(), n: 4 }];
    let requested = Deletion { known_by: known_by.clone(), ..deletion(BEACH) };
    let events = given(pair().into_events()).when(requested).events();
    let deleted = deletion_event(&events);
    assert_eq!((deleted.version.as_str(), deleted.sequencer.as_deref()), ("v1", Some("0B")));
    assert_eq!((&deleted.uploader, deleted.follows), (&Some(ada()), Some(Seq(1))));
    assert_eq!((&deleted.objects, &deleted.known_by), (&vec![format!("originals/{BEACH}.jpg")], &known_by));
    assert!(!events[0].is_identity(), "a deletion is in the photo's lane");
}

#[test]
fn deleted_photo_has_no_persons_and_keeps_its_face_count() {
    let state = state_of(&beach(), &deleted_history()).expect("a state");
    let expected = PhotoState {
        version: "v1".into(),
        sequencer: Some("0B".into()),
        status: PhotoStatus::Deleted,
        seq: Seq(2),
        projected_seq: None,
        faces: 2,
        persons: vec![],
        adopted: vec![],
    };
    assert_eq!(state, expected);
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<PhotoState>(&text).unwrap(), state, "{text}");
}

/// The object was read, so it was uploaded again after the deletion, whatever its version and sequencer.
#[test]
fn deleted_photo_is_processed_again_in_any_version() {
    let before = photo(BEACH).version("v0").sequencer("0A");
    for again in [photo(BEACH), photo(BEACH).sequencer("0B"), photo(BEACH).version("v2"), before] {
        given(deleted_history()).when(again.clone()).then(["processed: no persons"]);
        given(deleted_history()).when(again.rejected(Damaged)).then(["rejected: Damaged"]);
    }
}

#[test]
fn version_after_a_deletion_continues_face_numbers() {
    for later in [photo(BEACH).version("v2").sequencer("0C"), photo(BEACH).sequencer("0C"), photo(BEACH).version("v2")]
    {
        let events = given(deleted_history()).when(later.with_faces([good_face(), small_face()]).counter(9)).events();
        let [Event::PersonsAllocated(new), Event::PhotoProcessed(photo)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((photo.first_face, photo.follows), (2, Some(Seq(2))));
        assert_eq!(new.persons[0].face, FaceId { image: beach(), n: 2 });
        let state = state_of(&beach(), &[deleted_history(), events.clone()].concat()).expect("a state");
        assert_eq!((state.status, state.projected_seq, state.faces), (PhotoStatus::Processed, Some(Seq(4)), 4));
        assert_eq!(state.persons, [person(10)], "none of the former persons");
    }
    given(deleted_history())
        .when(photo(BEACH).version("v2").sequencer("0C").rejected(Damaged))
        .then(["rejected: Damaged"]);
}

#[test]
fn second_deletion_is_a_new_event() {
    let back = given(deleted_history()).when(pair().version("v2").sequencer("0C")).events();
    let history = [deleted_history(), back].concat();
    let again = given(history.clone()).when(deletion(BEACH)).events();
    assert_eq!(deletion_event(&again).follows, Some(Seq(3)));
    assert_eq!(deletion_event(&again).version, "v2");
    assert!(history.iter().all(|before| before.id() != again[0].id()), "an ID that is used already");
}

#[test]
fn repeated_deletion_is_refused_unless_the_row_exists_again() {
    for again in [Deletion { uploader: None, ..deletion(BEACH) }, removal(BEACH, None), removal(BEACH, Some("0D"))] {
        given(deleted_history()).when(again).then_refused("already committed by event 2");
    }
    let again = given(deleted_history()).when(deletion(BEACH)).events();
    assert_eq!(deletion_event(&again).persons, [], "a deleted photo has no persons");
    assert_ne!(again[0].id(), deleted_history()[1].id());
}

#[test]
fn photo_unknown_to_the_log_can_be_deleted() {
    given(no_events()).when(deletion(BEACH)).then(["deleted: Requested of "]);
    let without_version = events_of(deletion(BEACH));
    assert_eq!(
        (deletion_event(&without_version).version.as_str(), &deletion_event(&without_version).sequencer),
        ("", &None)
    );
    let with_version = events_of(Deletion { version: Some("v1".into()), ..deletion(BEACH) });
    given(with_version).when(photo(BEACH)).then(["processed: no persons"]);
}

#[test]
fn rejected_photo_can_be_deleted() {
    let history = events_of(photo(BEACH).rejected(Damaged));
    given(history.clone()).when(deletion(BEACH)).then(["deleted: Requested of "]);
    let deleted = given(history.clone()).when(deletion(BEACH)).events();
    given([history, deleted].concat()).when(photo(BEACH)).then(["processed: no persons"]);
}

#[test]
fn removal_older_than_the_last_upload_is_refused() {
    given(pair().into_events())
        .when(removal(BEACH, Some("0A")))
        .then_refused("a newer version was committed by event 1");
    for later in [Some("0C"), Some("0B"), None] {
        given(pair().into_events()).when(removal(BEACH, later)).then(["deleted: OriginalRemoved of person3, person7"]);
    }
    // An owner's request is about the present.
    let requested = Deletion { sequencer: Some("0A".into()), ..deletion(BEACH) };
    given(pair().into_events()).when(requested).then(["deleted: Requested of person3, person7"]);
}

/// Sequencers come from messages, and a high one must not refuse all later uploads.
#[test]
fn sequencer_of_a_removal_refuses_no_upload() {
    let processed = pair().into_events();
    let removed = given(processed.clone()).when(removal(BEACH, Some("FFFF"))).events();
    assert_eq!(deletion_event(&removed).sequencer.as_deref(), Some("FFFF"), "the later of both");
    let again = photo(BEACH).version("v2").sequencer("0C");
    given([processed, removed].concat()).when(again).then(["processed: no persons"]);
}

/// Returns the platform's table with the photo, its owner's limit, and a foreign tag.
fn table() -> Table {
    let mut table = Table::of_platform([&beach()]);
    for event in pair().into_events() {
        table.commit(&project(&event, noon(), &Merges::default()));
    }
    table.rows.insert(Key::limit(&ada()), fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 499, "note": 1.5 })));
    table.rows.insert(Key::new(BEACH, "PERSON#foreign"), fields(json!({ "entityType": "TAGGING#foreign" })));
    table
}

fn taggings(table: &Table) -> Vec<Key> {
    table.rows.keys().filter(|key| key.pk == BEACH && key.sk.starts_with("PERSON#")).cloned().collect()
}

fn deleted(command: impl Into<Command>) -> PhotoDeleted {
    deletion_event(&given(pair().into_events()).when(command).events()).clone()
}

/// Returns the rows that the deletion changes.
fn rows(event: PhotoDeleted, taggings: &[Key], has_limit: bool) -> Vec<Mutation> {
    let merges = Merges::default();
    let context = ProjectionContext { taggings, has_limit, ..ProjectionContext::new(noon(), &merges) };
    Projection::default().project(&Event::PhotoDeleted(event), &context)
}

#[test]
fn deletion_removes_row_and_tags_and_credits_the_limit() {
    let mut table = table();
    let mutations = rows(deleted(deletion(BEACH)), &taggings(&table), true);
    assert!(
        matches!(&mutations[0], Mutation::DeleteExisting { key } if *key == Key::image(&beach(), &ada())),
        "{mutations:?}"
    );
    assert_eq!(mutations.len(), 5, "{mutations:?}");
    table.commit(&mutations);
    let left: Vec<_> = table.rows.iter().collect();
    let limit = fields(json!({ "entityType": "DEFAULT_LIMIT", "limit": 500, "note": 1.5 }));
    assert_eq!(left, [(&Key::limit(&ada()), &limit)]);
}

#[test]
fn deletion_without_a_limit_row_credits_nothing() {
    let mut table = table();
    table.rows.remove(&Key::limit(&ada()));
    let mutations = rows(deleted(deletion(BEACH)), &taggings(&table), false);
    table.commit(&mutations);
    assert_eq!(table.text(), "");
}

#[test]
fn removed_original_leaves_row_and_limit_to_the_platform() {
    let before = table();
    for has_limit in [true, false] {
        for removed in [removal(BEACH, None), Deletion { uploader: Some(ada()), ..removal(BEACH, None) }] {
            let mut table = before.clone();
            let taggings = taggings(&table);
            table.commit(&rows(deleted(removed), &taggings, has_limit));
            let left: Vec<_> = table.rows.keys().cloned().collect();
            assert_eq!(left, [Key::image(&beach(), &ada()), Key::limit(&ada())]);
            assert_eq!(table.rows[&Key::limit(&ada())], before.rows[&Key::limit(&ada())]);
        }
    }
}

#[test]
fn deletion_without_an_image_row_credits_nothing() {
    let rowless = deleted(Deletion { uploader: None, ..deletion(BEACH) });
    let tagging = Key::tagging(&beach(), person(3));
    let mutations = rows(rowless, std::slice::from_ref(&tagging), true);
    assert_eq!(mutations, [Mutation::Delete { key: tagging }]);
}

#[test]
fn rebuild_removes_all_tags_of_a_deleted_photo() {
    let now = state_of(&beach(), &deleted_history()).expect("a state");
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(2, 7, Seq(4))));
    let processed = recorded(1, &pair().into_events()[0], noon());
    let stale = Projection::default().reproject(&processed, &now, &merges);
    let tagging = |number| Mutation::Delete { key: Key::tagging(&beach(), person(number)) };
    assert_eq!(stale, [tagging(2), tagging(3), tagging(7)], "also tags under aliases");
}

fn add(amount: i64) -> Mutation {
    Mutation::Add { key: Key::limit(&ada()), attribute: "limit".into(), amount }
}

#[test]
fn existing_row_to_delete_is_drift_and_a_past_addition_is_not() {
    let delete = Mutation::DeleteExisting { key: Key::counter() };
    assert_eq!(drift(&delete, Some(&Attributes::new())), [Difference::Stale(Key::counter())]);
    assert_eq!(drift(&delete, None), []);
    assert_eq!(delete.apply(Some(Attributes::new())), None);
    assert_eq!(drift(&add(1), Some(&fields(json!({ "limit": 1 })))), []);
    assert_eq!(drift(&add(1), None), []);
    assert!(delete.requires_row() && add(1).requires_row());
}

#[test]
fn additions_keep_the_format_of_numbers() {
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
    assert_eq!(add(1).apply(None), None, "no row, no sum");
    assert_eq!(add(1).apply(Some(fields(json!({ "a": 1 })))), Some(fields(json!({ "a": 1 }))));
    let huge = add(1).apply(Some(fields(json!({ "limit": i64::MAX })))).expect("a row");
    assert!(huge["limit"].as_f64() >= Some(9.2e18), "{huge:?}");
}

#[test]
fn deletion_event_records_its_cause() {
    assert_eq!(deleted(deletion(BEACH)).cause, DeletionCause::Requested);
    assert_eq!(deleted(removal(BEACH, None)).cause, DeletionCause::OriginalRemoved);
}
