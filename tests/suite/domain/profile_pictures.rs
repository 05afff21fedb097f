//! Profile pictures of users.

use serde_json::json;
use sparks_domain::{
    Command, Event, FaceId, ImageId, Key, Merges, Mutation, PhotoStatus, Policy, Presence, ProfileProcessed,
    RejectCode::Damaged, Rejection, Seq, Timestamp,
};

use crate::{
    given_when_then::{
        BEACH, Photo, ada, blurred_face, events_of, given, good_face, image_of, merged, no_events, person, photo,
        policy, project, small_face, state_of, uncertain_face,
    },
    memory_table::{Table, fields},
};

const ADA: &str = "ada@example.org";

fn picture() -> Photo {
    photo(BEACH)
}

fn image() -> ImageId {
    ImageId::of_profile(&ada())
}

fn noon() -> Timestamp {
    "2025-08-01T12:00:00.000Z".parse().unwrap()
}

#[track_caller]
fn profile(events: &[Event]) -> &ProfileProcessed {
    match events.last() {
        Some(Event::ProfileProcessed(profile)) => profile,
        other => panic!("{other:?} is not a ProfileProcessed"),
    }
}

#[test]
fn matching_profile_picture_identifies_the_user() {
    given(no_events())
        .when(picture().with_faces([good_face().candidate(7, 0.95)]).counter(9).into_profile_of(ADA))
        .then(["profile: matches person7"]);
    given(no_events())
        .when(picture().with_faces([small_face().candidate(7, 0.95)]).counter(9).into_profile_of(ADA))
        .then(["profile: matches person7"]);
    given(no_events())
        .when(picture().with_faces([good_face().candidate(7, 0.7)]).counter(9).into_profile_of(ADA))
        .then(["profile: matches person7 (template)"]);
}

#[test]
fn unmatched_profile_picture_creates_a_person() {
    given(no_events())
        .when(picture().with_faces([good_face().candidate(7, 0.4)]).counter(9).into_profile_of(ADA))
        .then(["allocated: person10 crop 0 templates 0", "profile: creates person10 (template)"]);
    let events = events_of(picture().with_faces([good_face()]).into_profile_of(ADA));
    let Event::PersonsAllocated(new) = &events[0] else { panic!("{events:?}") };
    assert_eq!((&new.image_id, new.photo_event), (&image(), events[1].id()));
    assert_eq!(new.persons[0].face, FaceId { image: image(), n: 0 });
}

#[test]
fn poor_profile_picture_identifies_no_person() {
    for poor in [small_face(), blurred_face(), uncertain_face()] {
        given(no_events()).when(picture().with_faces([poor]).into_profile_of(ADA)).then(["profile: too poor"]);
    }
    given(no_events()).when(picture().into_profile_of(ADA)).then(["profile: no face"]);
    let unclear =
        picture().with_faces([good_face().candidate(1, 0.9).candidate(2, 0.89)]).counter(2).into_profile_of(ADA);
    given(no_events()).with_policy(Policy { margin: 0.05, ..policy() }).when(unclear).then(["profile: ambiguous"]);
}

#[test]
fn repeated_profile_picture_is_refused_and_another_is_not() {
    let first = picture().with_faces([good_face()]).into_profile_of(ADA);
    let history = events_of(first.clone());
    given(history.clone()).when(first).then_refused("already committed by event 2");
    let next = given(history.clone())
        .when(picture().version("v2").with_faces([good_face().candidate(1, 0.9)]).counter(1).into_profile_of(ADA));
    let events = next.events();
    assert_eq!((profile(&events).first_face, profile(&events).follows), (1, Some(Seq(2))));
    assert_eq!(profile(&events).person(), Some(person(1)));
    // A return to the first picture is a new event.
    let history = [history, events].concat();
    let back = given(history.clone())
        .when(picture().with_faces([good_face().candidate(1, 0.9)]).counter(1).into_profile_of(ADA))
        .events();
    assert!(history.iter().all(|before| before.id() != back[0].id()));
    assert_eq!(profile(&back).first_face, 2);
}

#[test]
fn profile_pictures_of_different_users_are_independent() {
    let history = events_of(picture().with_faces([good_face()]).into_profile_of(ADA));
    given(history)
        .when(picture().with_faces([good_face()]).counter(1).into_profile_of("bob@example.org"))
        .then(["allocated: person2 crop 0 templates 0", "profile: creates person2 (template)"]);
}

/// The ID is recorded in the log.
#[test]
fn image_id_of_a_profile_never_changes() {
    assert_eq!(image().as_str(), "52eab501-7efe-5ccc-a918-79ef06f2ee11");
    assert_eq!(image().as_str().parse(), Ok(image()));
    assert_ne!(image(), ImageId::of_profile(&"bob@example.org".parse().unwrap()));
    assert_eq!(image_of(&picture().into_profile_of(ADA)), image());
}

#[test]
fn profile_state_has_the_person() {
    let history = events_of(picture().with_faces([good_face()]).into_profile_of(ADA));
    let state = state_of(&image(), &history).expect("a state");
    assert_eq!((state.status, state.version.as_str(), state.seq), (PhotoStatus::Processed, "v1", Seq(2)));
    assert_eq!((state.projected_seq, state.faces, state.persons), (Some(Seq(2)), 1, vec![person(1)]));
    let without_face = state_of(&image(), &events_of(picture().into_profile_of(ADA))).expect("a state");
    assert_eq!((without_face.faces, without_face.persons), (0, vec![]));
}

#[test]
fn unidentified_profile_picture_keeps_the_former_person() {
    let history = events_of(picture().with_faces([good_face()]).into_profile_of(ADA));
    for (face, faces) in [(vec![], 1), (vec![small_face()], 2)] {
        let next = given(history.clone())
            .when(picture().version("v2").with_faces(face).counter(1).into_profile_of(ADA))
            .events();
        let state = state_of(&image(), &[history.clone(), next].concat()).expect("a state");
        assert_eq!((state.version.as_str(), state.seq, state.projected_seq), ("v2", Seq(3), Some(Seq(2))));
        assert_eq!((state.faces, state.persons), (faces, vec![person(1)]));
    }
}

#[test]
fn rejected_profile_picture_keeps_the_former_one() {
    let history = events_of(picture().with_faces([good_face()]).into_profile_of(ADA));
    let reason = Rejection { code: Damaged, message: "it is damaged".into() };
    let source = picture().version("v2").source;
    let reject = Command::Reject { image_id: image(), uploader: ada(), source, reason };
    let rejected = given(history.clone()).when(reject).events();
    let state = state_of(&image(), &[history, rejected].concat()).expect("a state");
    assert_eq!((state.projected_seq, state.faces, state.persons), (Some(Seq(2)), 1, vec![person(1)]));
}

fn users() -> Table {
    let mut table = Table::default();
    let row =
        json!({ "entityType": "USER", "username": "ada", "updatedAt": "2025-08-01T09:00:00.000Z", "karma": 7.25 });
    table.rows.insert(Key::user(&ada()), fields(row));
    table
}

#[test]
fn user_row_gets_person_and_time() {
    let events = events_of(picture().with_faces([good_face().candidate(7, 0.95)]).counter(9).into_profile_of(ADA));
    let mutations = project(&events[0], noon(), &Merges::default());
    assert!(matches!(&mutations[..], [Mutation::Set { presence: Presence::Required, .. }]), "{mutations:?}");
    let mut table = users();
    table.commit(&mutations);
    let row = &table.rows[&Key::user(&ada())];
    assert_eq!(row["personId"], "person7");
    assert_eq!(row["updatedAt"], "2025-08-01T12:00:00.000Z");
    assert_eq!((&row["username"], &row["karma"]), (&json!("ada"), &json!(7.25)));
    assert_eq!(table.rows.len(), 1, "a profile picture tags no person");
}

#[test]
fn user_row_follows_merges() {
    let events = events_of(picture().with_faces([good_face().candidate(7, 0.95)]).counter(9).into_profile_of(ADA));
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let rows = project(&events[0], noon(), &merges);
    let [Mutation::Set { attributes, .. }] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(*attributes, fields(json!({ "personId": "person3" })));
}

#[test]
fn unidentified_profile_picture_changes_no_row() {
    for command in [picture().into_profile_of(ADA), picture().with_faces([small_face()]).into_profile_of(ADA)] {
        let events = events_of(command);
        assert_eq!(project(&events[0], noon(), &Merges::default()), []);
    }
}

#[test]
fn later_updated_at_of_the_platform_is_kept() {
    let mut table = users();
    let later = json!("2025-08-02T00:00:00.000Z");
    table.rows.get_mut(&Key::user(&ada())).unwrap().insert("updatedAt".into(), later.clone());
    let events = events_of(picture().with_faces([good_face().candidate(7, 0.95)]).counter(9).into_profile_of(ADA));
    table.commit(&project(&events[0], noon(), &Merges::default()));
    assert_eq!(table.rows[&Key::user(&ada())]["updatedAt"], later);
}

#[test]
fn new_person_of_a_profile_picture_gets_row_and_counter() {
    let events = events_of(picture().with_faces([good_face()]).counter(4).into_profile_of(ADA));
    let mut table = users();
    for event in &events {
        table.commit(&project(event, noon(), &Merges::default()));
    }
    let keys: Vec<_> = table.rows.keys().cloned().collect();
    assert_eq!(keys, [Key::person(person(5)), Key::counter(), Key::user(&ada())]);
}
