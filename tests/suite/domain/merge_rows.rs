//! Rows after merges and unmerges.

use serde_json::json;
use sparks_domain::{
    Email, Event, ImageId, Key, Merges, Mutation, PersonRegistry, PersonsMerged, Projection, ProjectionContext, Seq,
    Timestamp, UndoneMerge,
};

use crate::{
    given_when_then::{BEACH, FaceInput, ada, good_face, merged, person, photo, project, recorded, state_of, undone},
    memory_table::{Table, fields},
};

fn noon() -> Timestamp {
    "2025-08-01T12:00:00.000Z".parse().unwrap()
}

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

/// Returns these merges, in this order.
fn merges(pairs: &[(u32, u32)]) -> Merges {
    let mut merges = Merges::default();
    for (seq, (into, from)) in (1..).zip(pairs) {
        merges.evolve(&Event::PersonsMerged(merged(*into, *from, Seq(seq))));
    }
    merges
}

/// Returns the table after a photo with these faces was committed under these merges.
fn table_of(faces: impl IntoIterator<Item = FaceInput>, merges: &Merges) -> Table {
    let mut table = Table::of_platform([&beach()]);
    for event in photo(BEACH).with_faces(faces).into_events() {
        table.commit(&project(&event, noon(), merges));
    }
    table
}

fn tags(table: &Table) -> (Vec<&str>, &serde_json::Value) {
    let mut sort_keys = table.sort_keys(BEACH);
    sort_keys.retain(|sk| sk.starts_with("PERSON#"));
    (sort_keys, &table.rows[&Key::image(&beach(), &ada())]["persons"])
}

#[test]
fn photo_of_a_merged_person_is_tagged_with_the_survivor() {
    let table = table_of([good_face().candidate(4, 0.9)], &merges(&[(2, 4), (1, 2)]));
    assert_eq!(tags(&table), (vec!["PERSON#person1"], &json!(["person1"])));
    let tagging = &table.rows[&Key::tagging(&beach(), person(1))];
    assert_eq!(tagging["entityType"], "TAGGING#person1");
}

#[test]
fn two_merged_persons_get_one_tag() {
    let table = table_of(
        [good_face().candidate(4, 0.9), good_face().candidate(1, 0.9), good_face().candidate(3, 0.9)],
        &merges(&[(1, 4)]),
    );
    assert_eq!(tags(&table), (vec!["PERSON#person1", "PERSON#person3"], &json!(["person1", "person3"])));
}

#[test]
fn photo_tags_follow_a_merge_and_its_undo() {
    let faces = [good_face().candidate(4, 0.9), good_face().candidate(3, 0.9), good_face().candidate(1, 0.9)];
    let mut table = table_of(faces.clone(), &Merges::default());
    let before = table.text();
    let events = photo(BEACH).with_faces(faces).into_events();
    let state = state_of(&beach(), &events).unwrap();
    let update = |table: &mut Table, merges: &Merges| {
        table.commit(&Projection::default().reproject(&recorded(1, &events[0], noon()), &state, merges));
    };
    let mut known = merges(&[(3, 4), (1, 3)]);
    update(&mut table, &known);
    assert_eq!(tags(&table), (vec!["PERSON#person1"], &json!(["person1"])));
    known.evolve(&undone(&merged(3, 4, Seq(1)), Seq(3)));
    update(&mut table, &known);
    assert_eq!(tags(&table), (vec!["PERSON#person1", "PERSON#person4"], &json!(["person1", "person4"])));
    known.evolve(&undone(&merged(1, 3, Seq(2)), Seq(4)));
    update(&mut table, &known);
    assert_eq!(table.text(), before);
}

/// The first version was committed before the merges; none of its persons is in the second.
#[test]
fn newer_version_removes_tags_under_every_alias() {
    let first = photo(BEACH).with_faces([good_face().candidate(4, 0.9), good_face().candidate(2, 0.9)]).into_events();
    let second = photo(BEACH).version("v2").with_faces([good_face().candidate(5, 0.9)]).into_events();
    let known = merges(&[(1, 4), (5, 2)]);
    for is_updated in [false, true] {
        let then = if is_updated { known.clone() } else { Merges::default() };
        let mut table = table_of([good_face().candidate(4, 0.9), good_face().candidate(2, 0.9)], &then);
        let before = state_of(&beach(), &first);
        let context = ProjectionContext { before: before.as_ref(), ..ProjectionContext::new(noon(), &known) };
        table.commit(&Projection::default().project(&second[0], &context));
        assert_eq!(tags(&table), (vec!["PERSON#person5"], &json!(["person5"])), "{is_updated}");
    }
}

#[test]
fn rebuild_removes_stale_tags_under_every_alias() {
    let first = photo(BEACH).with_faces([good_face().candidate(4, 0.9), good_face().candidate(2, 0.9)]).into_events();
    let second = photo(BEACH).version("v2").with_faces([good_face().candidate(1, 0.9)]).into_events();
    let now = state_of(&beach(), &[first.clone(), second].concat()).unwrap();
    let first = recorded(1, &first[0], noon());
    let removed = Projection::default().reproject(&first, &now, &merges(&[(3, 4), (1, 3)]));
    let tag = |number| Mutation::Delete { key: Key::tagging(&beach(), person(number)) };
    assert_eq!(removed, [tag(2), tag(3), tag(4)], "person1 stays");
}

/// Returns rows of persons 1 to 3, one with foreign attributes, and of users.
fn platform() -> (Table, PersonRegistry) {
    let (mut table, mut registry) = (Table::of_platform([&beach()]), PersonRegistry::default());
    for event in photo(BEACH).with_faces([good_face(), good_face(), good_face()]).into_events() {
        registry.evolve(&event, noon());
        table.commit(&project(&event, noon(), &Merges::default()));
    }
    let theirs = fields(json!({ "birthday": "1815-12-10", "s3Key": "persons/person3.jpg", "votes": [1, 2.5] }));
    table.rows.get_mut(&Key::person(person(3))).unwrap().extend(theirs);
    for (email, number) in [("ada@example.org", 3), ("bob@example.org", 1), ("eve@example.org", 3)] {
        let row = json!({ "entityType": "USER", "personId": person(number), "karma": 7 });
        table.rows.insert(Key::user(&email.parse().unwrap()), fields(row));
    }
    (table, registry)
}

/// Merges two persons as a commit does.
fn merge_persons(
    table: &mut Table,
    registry: &mut PersonRegistry,
    into: u32,
    from: u32,
    users: &[&str],
) -> PersonsMerged {
    let merge = PersonsMerged {
        row: table.rows[&Key::person(person(from))].clone(),
        users: users.iter().map(|user| user.parse().unwrap()).collect(),
        ..merged(into, from, Seq(u64::from(from)))
    };
    registry.evolve(&Event::PersonsMerged(merge.clone()), noon());
    let context = ProjectionContext { persons: Some(&*registry), ..ProjectionContext::new(noon(), registry.merges()) };
    table.commit(&Projection::default().project(&Event::PersonsMerged(merge.clone()), &context));
    merge
}

/// Undoes a merge as a commit does, for these users.
fn unmerge(table: &mut Table, registry: &mut PersonRegistry, merge: &PersonsMerged, users: &[Email]) {
    let event = undone(merge, Seq(9));
    registry.evolve(&event, noon());
    let context = ProjectionContext {
        persons: Some(&*registry),
        undone: Some(UndoneMerge { merge, users }),
        ..ProjectionContext::new(noon(), registry.merges())
    };
    table.commit(&Projection::default().project(&event, &context));
}

fn person_of(table: &Table, user: &str) -> serde_json::Value {
    table.rows[&Key::user(&user.parse().unwrap())]["personId"].clone()
}

#[test]
fn merge_and_unmerge_restore_every_byte() {
    let (mut table, mut registry) = platform();
    let before = table.text();
    let merge = merge_persons(&mut table, &mut registry, 1, 3, &["ada@example.org", "eve@example.org"]);
    assert!(!table.rows.contains_key(&Key::person(person(3))));
    assert_eq!([person_of(&table, "ada@example.org"), person_of(&table, "eve@example.org")], ["person1", "person1"]);
    unmerge(&mut table, &mut registry, &merge, &merge.users);
    assert_eq!(table.text(), before);
}

#[test]
fn user_reassigned_after_a_merge_is_not_changed_by_the_undo() {
    let (mut table, mut registry) = platform();
    let merge = merge_persons(&mut table, &mut registry, 1, 3, &["ada@example.org", "eve@example.org"]);
    unmerge(&mut table, &mut registry, &merge, &[ada()]);
    assert_eq!([person_of(&table, "ada@example.org"), person_of(&table, "eve@example.org")], ["person3", "person1"]);
}

#[test]
fn chain_of_merges_is_undone_in_any_order() {
    for is_first_first in [true, false] {
        let (mut table, mut registry) = platform();
        let before = table.text();
        let first = merge_persons(&mut table, &mut registry, 2, 3, &["ada@example.org", "eve@example.org"]);
        let second = merge_persons(&mut table, &mut registry, 1, 2, &["ada@example.org", "eve@example.org"]);
        assert_eq!(person_of(&table, "ada@example.org"), "person1");
        if is_first_first {
            unmerge(&mut table, &mut registry, &first, &first.users);
            assert!(!table.rows.contains_key(&Key::person(person(2))), "person2 is still merged into person1");
            unmerge(&mut table, &mut registry, &second, &[]);
        } else {
            unmerge(&mut table, &mut registry, &second, &second.users);
            unmerge(&mut table, &mut registry, &first, &first.users);
        }
        assert_eq!(table.text(), before, "{is_first_first}");
    }
}

#[test]
fn name_follows_a_merge_and_its_undo() {
    let (mut table, mut registry) = platform();
    let named = sparks_domain::PersonRenamed {
        v: sparks_domain::Version,
        person: person(3),
        identity_seq: Seq(1),
        from: "person3".into(),
        to: "Ada".into(),
    };
    registry.evolve(&Event::PersonRenamed(named.clone()), noon());
    table.commit(&project(&Event::PersonRenamed(named), noon(), &Merges::default()));
    let before = table.text();
    let merge = merge_persons(&mut table, &mut registry, 2, 3, &[]);
    assert_eq!(table.rows[&Key::person(person(2))]["displayName"], "Ada");
    unmerge(&mut table, &mut registry, &merge, &merge.users);
    assert_eq!(table.text(), before);
}
