//! Users' pictures of themselves.

use serde_json::json;
use sparks_domain::{
    Command, Event, FaceId, ImageId, Key, Merges, Mutation, Outcome, Policy, Presence, ProfileProcessed, Projection,
    RejectCode::Damaged, Rejection, Seq, Timestamp,
};

use crate::{
    story::{
        BEACH, Photo, ada, blurred, given, good, happened, image_of, merged, nothing, person, photo, policy, small,
        state_of, uncertain,
    },
    table::{Table, fields},
};

const ADA: &str = "ada@example.org";

fn me() -> Photo {
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
        other => panic!("{other:?} is no profile"),
    }
}

#[test]
fn a_user_who_is_known_is_that_person() {
    given(nothing()).when(me().of([good().like(7, 0.95)]).counter(9).of_user(ADA)).then(["profile: is person7"]);
    given(nothing()).when(me().of([small().like(7, 0.95)]).counter(9).of_user(ADA)).then(["profile: is person7"]);
    given(nothing())
        .when(me().of([good().like(7, 0.7)]).counter(9).of_user(ADA))
        .then(["profile: is person7 (template)"]);
}

#[test]
fn a_user_whom_nobody_knows_is_a_new_person() {
    given(nothing())
        .when(me().of([good().like(7, 0.4)]).counter(9).of_user(ADA))
        .then(["allocated: person10 shown by 0 known by 0", "profile: founds person10 (template)"]);
    let events = happened(me().of([good()]).of_user(ADA));
    let Event::PersonsAllocated(new) = &events[0] else { panic!("{events:?}") };
    assert_eq!((&new.image_id, new.photo_event), (&image(), events[1].id()));
    assert_eq!(new.persons[0].face, FaceId { image: image(), n: 0 });
}

#[test]
fn a_poor_picture_tells_nobody() {
    for poor in [small(), blurred(), uncertain()] {
        given(nothing()).when(me().of([poor]).of_user(ADA)).then(["profile: too poor"]);
    }
    given(nothing()).when(me().of_user(ADA)).then(["profile: nobody"]);
    let unclear = me().of([good().like(1, 0.9).like(2, 0.89)]).counter(2).of_user(ADA);
    given(nothing()).by(Policy { margin: 0.05, ..policy() }).when(unclear).then(["profile: ambiguous"]);
}

#[test]
fn the_same_picture_again_is_refused_and_another_is_not() {
    let first = me().of([good()]).of_user(ADA);
    let history = happened(first.clone());
    given(history.clone()).when(first).then_refused("already committed by event 2");
    let next = given(history.clone()).when(me().version("v2").of([good().like(1, 0.9)]).counter(1).of_user(ADA));
    let events = next.events();
    assert_eq!((profile(&events).first_face, profile(&events).follows), (1, Some(Seq(2))));
    assert_eq!(profile(&events).person(), Some(person(1)));
    // Back to the first picture: an event of its own.
    let history = [history, events].concat();
    let back = given(history.clone()).when(me().of([good().like(1, 0.9)]).counter(1).of_user(ADA)).events();
    assert!(history.iter().all(|before| before.id() != back[0].id()));
    assert_eq!(profile(&back).first_face, 2);
}

#[test]
fn pictures_of_different_users_have_nothing_to_do_with_each_other() {
    let history = happened(me().of([good()]).of_user(ADA));
    given(history)
        .when(me().of([good()]).counter(1).of_user("bob@example.org"))
        .then(["allocated: person2 shown by 0 known by 0", "profile: founds person2 (template)"]);
}

/// The name is in the log for ever.
#[test]
fn the_name_of_a_users_pictures_never_changes() {
    assert_eq!(image().as_str(), "52eab501-7efe-5ccc-a918-79ef06f2ee11");
    assert_eq!(image().as_str().parse(), Ok(image()));
    assert_ne!(image(), ImageId::of_profile(&"bob@example.org".parse().unwrap()));
    assert_eq!(image_of(&me().of_user(ADA)), image());
}

#[test]
fn the_state_of_a_users_picture_says_who_they_are() {
    let history = happened(me().of([good()]).of_user(ADA));
    let state = state_of(&image(), &history).expect("a state");
    assert_eq!((state.outcome, state.version.as_str(), state.seq), (Outcome::Processed, "v1", Seq(2)));
    assert_eq!((state.shows, state.faces, state.persons), (Some(Seq(2)), 1, vec![person(1)]));
    let nobody = state_of(&image(), &happened(me().of_user(ADA))).expect("a state");
    assert_eq!((nobody.faces, nobody.persons), (0, vec![]));
}

#[test]
fn a_picture_that_tells_nobody_leaves_who_they_were() {
    let history = happened(me().of([good()]).of_user(ADA));
    for (face, faces) in [(vec![], 1), (vec![small()], 2)] {
        let next = given(history.clone()).when(me().version("v2").of(face).counter(1).of_user(ADA)).events();
        let state = state_of(&image(), &[history.clone(), next].concat()).expect("a state");
        assert_eq!((state.version.as_str(), state.seq, state.shows), ("v2", Seq(3), Some(Seq(2))));
        assert_eq!((state.faces, state.persons), (faces, vec![person(1)]));
    }
}

#[test]
fn a_picture_that_cannot_be_taken_leaves_the_one_before() {
    let history = happened(me().of([good()]).of_user(ADA));
    let reason = Rejection { code: Damaged, message: "it is damaged".into() };
    let source = me().version("v2").source;
    let reject = Command::Reject { image_id: image(), uploader: ada(), source, reason };
    let rejected = given(history.clone()).when(reject).events();
    let state = state_of(&image(), &[history, rejected].concat()).expect("a state");
    assert_eq!((state.shows, state.faces, state.persons), (Some(Seq(2)), 1, vec![person(1)]));
}

fn users() -> Table {
    let mut table = Table::default();
    let row =
        json!({ "entityType": "USER", "username": "ada", "updatedAt": "2025-08-01T09:00:00.000Z", "karma": 7.25 });
    table.rows.insert(Key::user(&ada()), fields(row));
    table
}

#[test]
fn the_users_row_gets_the_person_and_the_time() {
    let events = happened(me().of([good().like(7, 0.95)]).counter(9).of_user(ADA));
    let mutations = Projection::default().project(None, &events[0], noon(), &Merges::default());
    assert!(matches!(&mutations[..], [Mutation::Set { presence: Presence::Required, .. }]), "{mutations:?}");
    let mut table = users();
    table.commit(&mutations);
    let row = &table.rows[&Key::user(&ada())];
    assert_eq!(row["personId"], "person7");
    assert_eq!(row["updatedAt"], "2025-08-01T12:00:00.000Z");
    assert_eq!((&row["username"], &row["karma"]), (&json!("ada"), &json!(7.25)));
    assert_eq!(table.rows.len(), 1, "nobody is tagged");
}

#[test]
fn a_user_is_whoever_their_person_is_by_now() {
    let events = happened(me().of([good().like(7, 0.95)]).counter(9).of_user(ADA));
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let row = Projection::default().profile(profile(&events), noon(), &merges);
    let Some(Mutation::Set { attributes, .. }) = row else { panic!("{row:?}") };
    assert_eq!(attributes, fields(json!({ "personId": "person3" })));
}

#[test]
fn a_picture_that_tells_nobody_changes_no_row() {
    for command in [me().of_user(ADA), me().of([small()]).of_user(ADA)] {
        let events = happened(command);
        assert_eq!(Projection::default().project(None, &events[0], noon(), &Merges::default()), []);
    }
}

#[test]
fn a_later_time_of_the_platform_stays() {
    let mut table = users();
    let later = json!("2025-08-02T00:00:00.000Z");
    table.rows.get_mut(&Key::user(&ada())).unwrap().insert("updatedAt".into(), later.clone());
    let events = happened(me().of([good().like(7, 0.95)]).counter(9).of_user(ADA));
    table.commit(&Projection::default().project(None, &events[0], noon(), &Merges::default()));
    assert_eq!(table.rows[&Key::user(&ada())]["updatedAt"], later);
}

#[test]
fn whoever_is_founded_by_a_picture_has_a_row_and_a_number() {
    let events = happened(me().of([good()]).counter(4).of_user(ADA));
    let mut table = users();
    for event in &events {
        table.commit(&Projection::default().project(None, event, noon(), &Merges::default()));
    }
    let keys: Vec<_> = table.rows.keys().cloned().collect();
    assert_eq!(keys, [Key::person(person(5)), Key::counter(), Key::user(&ada())]);
}
