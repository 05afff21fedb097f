//! Forgotten persons, reinstatement, and removal from the gallery.

use serde_json::json;
use sparks_domain::{
    Event, FaceId, Gallery, Key, Merges, Mutation, Person, PersonId, PersonRegistry, PersonRenamed, Presence,
    Projection, ProjectionContext, Seq, Signature, Timestamp, Version,
};

use crate::{
    given_when_then::{
        BEACH, PARTY, forgotten, given, good_face, merged, no_events, person, photo, pictured, processed, reinstated,
        undone,
    },
    memory_table::{Table, fields},
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// Returns persons 1 to 4; the third has a name.
fn registry() -> PersonRegistry {
    let mut registry = PersonRegistry::default();
    for event in photo(BEACH).with_faces(vec![good_face(); 4]).into_events() {
        registry.evolve(&event, at(100));
    }
    let (from, to) = ("person3".into(), "Ada".into());
    let named = PersonRenamed { v: Version, person: person(3), identity_seq: Seq(1), from, to };
    registry.evolve(&Event::PersonRenamed(named), at(200));
    registry
}

fn after(events: &[Event]) -> PersonRegistry {
    let mut registry = self::registry();
    for event in events {
        registry.evolve(event, at(300));
    }
    registry
}

fn numbers(registry: &PersonRegistry) -> Vec<u32> {
    let numbers: Vec<u32> = registry.iter().map(|(id, _)| id.number()).collect();
    assert_eq!(registry.len(), numbers.len());
    assert_eq!(registry.is_empty(), numbers.is_empty());
    numbers
}

fn merge(into: u32, from: u32, seq: u64) -> Event {
    Event::PersonsMerged(merged(into, from, Seq(seq)))
}

#[test]
fn forgotten_person_is_not_listed() {
    let registry = after(&[forgotten(&[3, 4], Seq(2))]);
    assert_eq!(numbers(&registry), [1, 2]);
    assert_eq!(registry.get(person(3)), None);
    assert!(registry.is_forgotten(person(3)) && !registry.is_forgotten(person(1)));
    assert_eq!(registry.forgotten().collect::<Vec<PersonId>>(), [person(3), person(4)]);
    assert_eq!(registry.get_forgotten(person(1)), None, "person1 is known");
    assert_eq!(registry.get_forgotten(person(9)), None, "there never was a person9");
    assert!(numbers(&after(&[forgotten(&[1, 2, 3, 4], Seq(2))])).is_empty());
}

#[test]
fn numbers_of_forgotten_persons_are_not_reused() {
    let registry = after(&[forgotten(&[1, 2, 3, 4], Seq(2))]);
    assert_eq!(registry.highest_number(), 4);
    let new =
        given(no_events()).when(photo(PARTY).with_faces([good_face()]).counter(registry.highest_number())).events();
    assert_eq!(processed(&new).persons(), [person(5)]);
}

#[test]
fn forgetting_twice_changes_nothing() {
    assert_eq!(after(&[forgotten(&[3], Seq(2)), forgotten(&[3], Seq(3))]), after(&[forgotten(&[3], Seq(2))]));
}

#[test]
fn reinstated_person_keeps_the_name_and_gets_the_new_face() {
    let reinstatement = [forgotten(&[3], Seq(2)), reinstated(3, 5, Seq(3))];
    let registry = after(&reinstatement);
    assert_eq!(numbers(&registry), [1, 2, 3, 4]);
    let known = registry.get(person(3)).expect("person3");
    assert_eq!((known.display_name.as_str(), known.created), ("Ada", at(100)));
    assert_eq!(known.face, FaceId { image: PARTY.parse().unwrap(), n: 5 });
    assert_eq!(registry.get_forgotten(person(3)), None);
    // The person may be forgotten again.
    assert_eq!(numbers(&after(&[&reinstatement[..], &[forgotten(&[3], Seq(4))]].concat())), [1, 2, 4]);
}

#[test]
fn forgotten_person_keeps_name_and_face_in_the_registry() {
    let before = registry().get(person(3)).expect("person3");
    assert_eq!(after(&[forgotten(&[3], Seq(2))]).get_forgotten(person(3)), Some(before));
    let merged = after(&[merge(1, 3, 2), forgotten(&[1, 3], Seq(3))]);
    assert_eq!(merged.get_forgotten(person(1)).expect("person1").display_name, "Ada", "the name that was shown");
}

#[test]
fn new_crop_face_changes_the_face_only() {
    let registry = after(&[pictured(3, 7, Seq(2))]);
    let known = registry.get(person(3)).expect("person3");
    assert_eq!((known.display_name.as_str(), known.created, known.face.n), ("Ada", at(100), 7));
    assert_eq!(numbers(&registry), [1, 2, 3, 4]);
    assert_eq!(registry.get(person(1)), self::registry().get(person(1)));
}

#[test]
fn crop_and_reinstatement_of_an_unknown_person_do_nothing() {
    let mut registry = PersonRegistry::default();
    registry.evolve(&pictured(8, 0, Seq(1)), at(1));
    registry.evolve(&reinstated(8, 0, Seq(1)), at(1));
    assert_eq!(registry, PersonRegistry::default());
}

#[test]
fn merged_members_are_forgotten_together() {
    let registry = after(&[merge(1, 3, 2), forgotten(&[1, 3], Seq(3))]);
    assert_eq!(numbers(&registry), [2, 4]);
    assert_eq!((registry.get(person(1)), registry.get(person(3))), (None, None));
}

#[test]
fn merged_and_forgotten_member_is_subtracted_once() {
    assert_eq!(numbers(&after(&[merge(1, 3, 2), forgotten(&[3], Seq(3))])), [1, 2, 4]);
    assert_eq!(numbers(&after(&[forgotten(&[3], Seq(2)), merge(1, 3, 3)])), [1, 2, 4]);
}

#[test]
fn reinstated_person_shows_the_name_of_a_merged_member() {
    let mut registry = after(&[merge(1, 3, 2), forgotten(&[1, 3], Seq(3)), reinstated(1, 0, Seq(4))]);
    assert_eq!(numbers(&registry), [1, 2, 4]);
    assert_eq!(registry.get(person(1)).expect("person1").display_name, "Ada");
    // After the unmerge both are persons.
    registry.evolve(&undone(&merged(1, 3, Seq(2)), Seq(5)), at(400));
    assert_eq!(numbers(&registry), [1, 2, 3, 4]);
}

#[test]
fn forgotten_persons_stay_forgotten_after_an_unmerge() {
    let merge = merged(1, 3, Seq(2));
    let history = [Event::PersonsMerged(merge.clone()), forgotten(&[1, 3], Seq(3)), undone(&merge, Seq(4))];
    assert_eq!(numbers(&after(&history)), [2, 4]);
}

/// Returns the rows of persons 1 to 4.
fn table() -> Table {
    let mut table = Table::default();
    for (id, person) in registry().iter() {
        table.commit(&[Projection::person_row(id, &person)]);
    }
    table
}

/// Returns the rows that an identity event changes; `reinstated` is what was recorded of a forgotten person.
fn rows(event: &Event, reinstated: Option<&Person>) -> Vec<Mutation> {
    let merges = Merges::default();
    Projection::default().project(event, &ProjectionContext { reinstated, ..ProjectionContext::new(at(300), &merges) })
}

#[test]
fn rows_of_forgotten_persons_are_removed_if_they_exist() {
    let mut table = table();
    let mutations = rows(&forgotten(&[2, 4, 9], Seq(2)), None);
    table.commit(&mutations);
    let left: Vec<_> = table.rows.keys().cloned().collect();
    assert_eq!(left, [Key::person(person(1)), Key::person(person(3))]);
    assert!(mutations.iter().all(|mutation| !mutation.requires_row()), "{mutations:?}");
}

#[test]
fn new_crop_face_changes_no_row() {
    assert_eq!(rows(&pictured(3, 7, Seq(2)), None), []);
}

#[test]
fn reinstatement_restores_the_person_row() {
    let (mut table, before) = (table(), table().text());
    table.commit(&rows(&forgotten(&[3], Seq(2)), None));
    let registry = after(&[forgotten(&[3], Seq(2))]);
    let restored = rows(&reinstated(3, 7, Seq(3)), registry.get_forgotten(person(3)).as_ref());
    table.commit(&restored);
    assert_eq!(table.text(), before);
    assert!(matches!(&restored[..], [Mutation::Set { presence: Presence::Any, .. }]), "{restored:?}");
    // A row that was written in between keeps its foreign attributes.
    table.rows.get_mut(&Key::person(person(3))).unwrap().extend(fields(json!({ "theirs": 1.5 })));
    table.commit(&restored);
    assert_eq!(table.rows[&Key::person(person(3))]["theirs"], json!(1.5));
}

fn signature(angle: f32) -> Signature {
    Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction")
}

fn nearest(gallery: &Gallery, angle: f32) -> Vec<(u32, f32)> {
    gallery.nearest("m", &signature(angle), 9).iter().map(|near| (near.person.number(), near.similarity)).collect()
}

/// Returns a gallery of persons 1 to 3 with two templates each, enrolled alternately.
fn gallery() -> Gallery {
    let mut gallery = Gallery::default();
    for angle in [0.0, 0.25] {
        for number in [1_u8, 2, 3] {
            gallery.enroll(person(number.into()), "m", &signature(angle + f32::from(number) * 0.5));
        }
    }
    gallery.enroll(person(2), "another", &signature(0.0));
    gallery
}

#[test]
fn removing_a_person_leaves_other_templates_unchanged() {
    let (mut gallery, before) = (gallery(), gallery());
    gallery.remove(person(2));
    assert_eq!(gallery.len(), 4);
    assert_eq!(gallery.persons("m").keys().copied().collect::<Vec<_>>(), [person(1), person(3)]);
    assert!(gallery.nearest("another", &signature(0.0), 9).is_empty(), "removed in every model");
    for angle in [0.5, 0.8, 1.0, 1.3, 1.7, 2.0] {
        let mut expected = nearest(&before, angle);
        expected.retain(|(number, _)| *number != 2);
        assert_eq!(nearest(&gallery, angle), expected, "{angle}");
    }
    gallery.remove(person(2));
    gallery.remove(person(77));
    assert_eq!(gallery.len(), 4);
}

#[test]
fn re_enrolled_person_has_only_new_templates() {
    let mut gallery = gallery();
    gallery.remove(person(2));
    gallery.enroll(person(2), "m", &signature(3.0));
    assert_eq!(nearest(&gallery, 3.0)[0], (2, 1.0));
    assert!(nearest(&gallery, 1.0).iter().any(|(number, similarity)| *number == 2 && *similarity < 0.0));
    // Further templates replace only the person's own.
    for n in 0..40_u8 {
        gallery.enroll(person(2), "m", &signature(2.0 + f32::from(n) * 0.02));
    }
    assert_eq!(gallery.persons("m")[&person(2)].len(), Gallery::MAX_TEMPLATES);
    assert_eq!((gallery.persons("m")[&person(1)].len(), gallery.persons("m")[&person(3)].len()), (2, 2));
}

#[test]
fn emptied_gallery_accepts_other_dimensions() {
    let mut gallery = gallery();
    for number in [1, 2, 3] {
        gallery.remove(person(number));
    }
    assert!(gallery.is_empty());
    let longer = Signature::quantise(&[0.5, 0.5, 0.5]).expect("a direction");
    gallery.enroll(person(4), "m", &longer);
    assert_eq!(gallery.nearest("m", &longer, 1)[0].person, person(4));
}

#[test]
fn removal_from_the_gallery_is_by_number_before_merges() {
    let mut gallery = gallery();
    let mut merges = Merges::default();
    merges.evolve(&merge(1, 2, 1));
    gallery.apply_merges(&merges);
    gallery.remove(person(2));
    assert_eq!(gallery.persons("m")[&person(1)].len(), 2, "their own templates");
    gallery.remove(person(1));
    assert_eq!(gallery.persons("m").keys().copied().collect::<Vec<_>>(), [person(3)]);
}
