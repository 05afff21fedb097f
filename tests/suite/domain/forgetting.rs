//! Persons who are in no photo any more, and those who come back.

use serde_json::json;
use sparks_domain::{
    Event, FaceId, Gallery, Key, Merges, Mutation, People, PersonId, PersonRenamed, Presence, Projection, Seq,
    Signature, Timestamp, Version,
};

use crate::{
    story::{
        BEACH, PARTY, forgotten, given, good, merged, nothing, person, photo, pictured, processed, reinstated, undone,
    },
    table::{Table, fields},
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// Persons 1 to 4, of whom the third has a name.
fn people() -> People {
    let mut people = People::default();
    for event in photo(BEACH).of(vec![good(); 4]).happened() {
        people.evolve(&event, at(100));
    }
    let (from, to) = ("person3".into(), "Ada".into());
    let named = PersonRenamed { v: Version, person: person(3), identity_seq: Seq(1), from, to };
    people.evolve(&Event::PersonRenamed(named), at(200));
    people
}

fn after(events: &[Event]) -> People {
    let mut people = people();
    for event in events {
        people.evolve(event, at(300));
    }
    people
}

fn numbers(people: &People) -> Vec<u32> {
    let numbers: Vec<u32> = people.iter().map(|(id, _)| id.number()).collect();
    assert_eq!(people.len(), numbers.len(), "those who are there are those who are counted");
    assert_eq!(people.is_empty(), numbers.is_empty());
    numbers
}

fn join(into: u32, from: u32, seq: u64) -> Event {
    Event::PersonsMerged(merged(into, from, Seq(seq)))
}

#[test]
fn whoever_is_forgotten_is_not_known_and_not_counted() {
    let people = after(&[forgotten(&[3, 4], Seq(2))]);
    assert_eq!(numbers(&people), [1, 2]);
    assert_eq!(people.get(person(3)), None);
    assert!(people.is_forgotten(person(3)) && !people.is_forgotten(person(1)));
    assert_eq!(people.forgotten().collect::<Vec<PersonId>>(), [person(3), person(4)]);
    assert_eq!(people.remembered(person(1)), None, "person1 is known");
    assert_eq!(people.remembered(person(9)), None, "there never was a person9");
    assert!(numbers(&after(&[forgotten(&[1, 2, 3, 4], Seq(2))])).is_empty());
}

#[test]
fn numbers_of_the_forgotten_are_never_given_again() {
    let people = after(&[forgotten(&[1, 2, 3, 4], Seq(2))]);
    assert_eq!(people.highest(), 4);
    let new = given(nothing()).when(photo(PARTY).of([good()]).counter(people.highest())).events();
    assert_eq!(processed(&new).persons(), [person(5)]);
}

#[test]
fn forgetting_twice_is_forgetting_once() {
    assert_eq!(after(&[forgotten(&[3], Seq(2)), forgotten(&[3], Seq(3))]), after(&[forgotten(&[3], Seq(2))]));
}

#[test]
fn whoever_comes_back_has_their_name_and_another_face() {
    let back = [forgotten(&[3], Seq(2)), reinstated(3, 5, Seq(3))];
    let people = after(&back);
    assert_eq!(numbers(&people), [1, 2, 3, 4]);
    let known = people.get(person(3)).expect("person3");
    assert_eq!((known.display_name.as_str(), known.created), ("Ada", at(100)));
    assert_eq!(known.face, FaceId { image: PARTY.parse().unwrap(), n: 5 });
    assert_eq!(people.remembered(person(3)), None);
    // And may go again.
    assert_eq!(numbers(&after(&[&back[..], &[forgotten(&[3], Seq(4))]].concat())), [1, 2, 4]);
}

#[test]
fn what_is_remembered_is_what_was_known() {
    let before = people().get(person(3)).expect("person3");
    assert_eq!(after(&[forgotten(&[3], Seq(2))]).remembered(person(3)), Some(before));
    let joined = after(&[join(1, 3, 2), forgotten(&[1, 3], Seq(3))]);
    assert_eq!(joined.remembered(person(1)).expect("person1").display_name, "Ada", "as they were shown");
}

#[test]
fn another_picture_changes_the_face_only() {
    let people = after(&[pictured(3, 7, Seq(2))]);
    let known = people.get(person(3)).expect("person3");
    assert_eq!((known.display_name.as_str(), known.created, known.face.n), ("Ada", at(100), 7));
    assert_eq!(numbers(&people), [1, 2, 3, 4]);
    assert_eq!(people.get(person(1)), self::people().get(person(1)));
}

#[test]
fn pictures_of_nobody_make_nobody() {
    let mut people = People::default();
    people.evolve(&pictured(8, 0, Seq(1)), at(1));
    people.evolve(&reinstated(8, 0, Seq(1)), at(1));
    assert_eq!(people, People::default());
}

#[test]
fn whoever_was_joined_is_forgotten_with_whom_they_are() {
    let people = after(&[join(1, 3, 2), forgotten(&[1, 3], Seq(3))]);
    assert_eq!(numbers(&people), [2, 4]);
    assert_eq!((people.get(person(1)), people.get(person(3))), (None, None));
}

#[test]
fn one_who_was_joined_and_forgotten_alone_is_counted_out_once() {
    assert_eq!(numbers(&after(&[join(1, 3, 2), forgotten(&[3], Seq(3))])), [1, 2, 4]);
    assert_eq!(numbers(&after(&[forgotten(&[3], Seq(2)), join(1, 3, 3)])), [1, 2, 4]);
}

#[test]
fn whoever_comes_back_has_the_name_of_whoever_is_joined_into_them() {
    let mut people = after(&[join(1, 3, 2), forgotten(&[1, 3], Seq(3)), reinstated(1, 0, Seq(4))]);
    assert_eq!(numbers(&people), [1, 2, 4]);
    assert_eq!(people.get(person(1)).expect("person1").display_name, "Ada");
    // Parted again, both are somebody.
    people.evolve(&undone(&merged(1, 3, Seq(2)), Seq(5)), at(400));
    assert_eq!(numbers(&people), [1, 2, 3, 4]);
}

#[test]
fn the_forgotten_stay_forgotten_when_a_merge_is_taken_back() {
    let merge = merged(1, 3, Seq(2));
    let history = [Event::PersonsMerged(merge.clone()), forgotten(&[1, 3], Seq(3)), undone(&merge, Seq(4))];
    assert_eq!(numbers(&after(&history)), [2, 4]);
}

/// The rows of persons 1 to 4.
fn table() -> Table {
    let mut table = Table::default();
    for (id, person) in people().iter() {
        table.commit(&[Projection::person(id, &person)]);
    }
    table
}

fn project(event: &Event) -> Vec<Mutation> {
    Projection::default().project(None, event, at(300), &Merges::default())
}

#[test]
fn the_rows_of_the_forgotten_go_whether_or_not_they_are_there() {
    let mut table = table();
    let mutations = project(&forgotten(&[2, 4, 9], Seq(2)));
    table.commit(&mutations);
    let left: Vec<_> = table.rows.keys().cloned().collect();
    assert_eq!(left, [Key::person(person(1)), Key::person(person(3))]);
    assert!(mutations.iter().all(|mutation| !mutation.requires_row()), "{mutations:?}");
}

#[test]
fn a_picture_changes_no_row() {
    assert_eq!(project(&pictured(3, 7, Seq(2))), []);
    assert_eq!(project(&reinstated(3, 7, Seq(2))), [], "what it makes of the table takes more than the event");
}

#[test]
fn whoever_comes_back_has_the_row_they_had() {
    let (mut table, before) = (table(), table().text());
    table.commit(&project(&forgotten(&[3], Seq(2))));
    let people = after(&[forgotten(&[3], Seq(2))]);
    let back = Projection::default().reinstated(person(3), &people.remembered(person(3)).expect("person3"));
    table.commit(std::slice::from_ref(&back));
    assert_eq!(table.text(), before);
    assert!(matches!(back, Mutation::Set { presence: Presence::Any, .. }), "{back:?}");
    // A row that somebody made meanwhile keeps what is theirs.
    table.rows.get_mut(&Key::person(person(3))).unwrap().extend(fields(json!({ "theirs": 1.5 })));
    table.commit(&[back]);
    assert_eq!(table.rows[&Key::person(person(3))]["theirs"], json!(1.5));
}

fn looks(angle: f32) -> Signature {
    Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction")
}

fn nearest(gallery: &Gallery, angle: f32) -> Vec<(u32, f32)> {
    gallery.nearest("m", &looks(angle), 9).iter().map(|near| (near.person.number(), near.similarity)).collect()
}

/// Persons 1 to 3 with two faces each, learnt in turns.
fn gallery() -> Gallery {
    let mut gallery = Gallery::default();
    for angle in [0.0, 0.25] {
        for number in [1_u8, 2, 3] {
            gallery.learn(person(number.into()), "m", &looks(angle + f32::from(number) * 0.5));
        }
    }
    gallery.learn(person(2), "another", &looks(0.0));
    gallery
}

#[test]
fn nobody_is_like_the_forgotten_and_all_others_are_as_they_were() {
    let (mut gallery, before) = (gallery(), gallery());
    gallery.forget(person(2));
    assert_eq!(gallery.len(), 4);
    assert_eq!(gallery.persons("m").keys().copied().collect::<Vec<_>>(), [person(1), person(3)]);
    assert!(gallery.nearest("another", &looks(0.0), 9).is_empty(), "in no model");
    for angle in [0.5, 0.8, 1.0, 1.3, 1.7, 2.0] {
        let mut expected = nearest(&before, angle);
        expected.retain(|(number, _)| *number != 2);
        assert_eq!(nearest(&gallery, angle), expected, "{angle}");
    }
    gallery.forget(person(2));
    gallery.forget(person(77));
    assert_eq!(gallery.len(), 4);
}

#[test]
fn whoever_is_learnt_again_is_known_by_what_is_learnt_then() {
    let mut gallery = gallery();
    gallery.forget(person(2));
    gallery.learn(person(2), "m", &looks(3.0));
    assert_eq!(nearest(&gallery, 3.0)[0], (2, 1.0));
    assert!(nearest(&gallery, 1.0).iter().any(|(number, similarity)| *number == 2 && *similarity < 0.0));
    // Beyond what a person is known by, places are taken from their own faces.
    for n in 0..40_u8 {
        gallery.learn(person(2), "m", &looks(2.0 + f32::from(n) * 0.02));
    }
    assert_eq!(gallery.persons("m")[&person(2)].len(), Gallery::TEMPLATES);
    assert_eq!((gallery.persons("m")[&person(1)].len(), gallery.persons("m")[&person(3)].len()), (2, 2));
}

#[test]
fn everybody_forgotten_leaves_room_for_signatures_of_another_length() {
    let mut gallery = gallery();
    for number in [1, 2, 3] {
        gallery.forget(person(number));
    }
    assert!(gallery.is_empty());
    let longer = Signature::quantise(&[0.5, 0.5, 0.5]).expect("a direction");
    gallery.learn(person(4), "m", &longer);
    assert_eq!(gallery.nearest("m", &longer, 1)[0].person, person(4));
}

#[test]
fn whoever_was_joined_into_another_is_forgotten_by_their_own_number() {
    let mut gallery = gallery();
    let mut merges = Merges::default();
    merges.evolve(&join(1, 2, 1));
    gallery.follow(&merges);
    gallery.forget(person(2));
    assert_eq!(gallery.persons("m")[&person(1)].len(), 2, "their own faces");
    gallery.forget(person(1));
    assert_eq!(gallery.persons("m").keys().copied().collect::<Vec<_>>(), [person(3)]);
}
