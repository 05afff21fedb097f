//! What merges make of the platform's table.

use serde_json::json;
use sparks_domain::{Event, ImageId, Key, Merges, Mutation, People, PersonsMerged, Projection, Seq, Timestamp};

use crate::{
    story::{BEACH, Seen, ada, good, merged, person, photo, processed, state_of, undone},
    table::{Table, fields},
};

fn noon() -> Timestamp {
    "2025-08-01T12:00:00.000Z".parse().unwrap()
}

fn beach() -> ImageId {
    BEACH.parse().unwrap()
}

/// The merges after these, in this order.
fn merges(pairs: &[(u32, u32)]) -> Merges {
    let mut merges = Merges::default();
    for (seq, (into, from)) in (1..).zip(pairs) {
        merges.evolve(&Event::PersonsMerged(merged(*into, *from, Seq(seq))));
    }
    merges
}

/// The table after a photo of these faces was committed by somebody who knew of these merges.
fn table_of(faces: impl IntoIterator<Item = Seen>, merges: &Merges) -> Table {
    let mut table = Table::of_platform([&beach()]);
    for event in photo(BEACH).of(faces).happened() {
        table.commit(&Projection::default().project(None, &event, noon(), merges));
    }
    table
}

fn shown(table: &Table) -> (Vec<&str>, &serde_json::Value) {
    let mut tags = table.sort_keys(BEACH);
    tags.retain(|sk| sk.starts_with("PERSON#"));
    (tags, &table.rows[&Key::image(&beach(), &ada())]["persons"])
}

#[test]
fn a_photo_of_somebody_joined_shows_whoever_they_are_now() {
    let table = table_of([good().like(4, 0.9)], &merges(&[(2, 4), (1, 2)]));
    assert_eq!(shown(&table), (vec!["PERSON#person1"], &json!(["person1"])));
    let tagging = &table.rows[&Key::tagging(&beach(), person(1))];
    assert_eq!(tagging["entityType"], "TAGGING#person1");
}

#[test]
fn two_who_are_one_get_one_tag() {
    let table = table_of([good().like(4, 0.9), good().like(1, 0.9), good().like(3, 0.9)], &merges(&[(1, 4)]));
    assert_eq!(shown(&table), (vec!["PERSON#person1", "PERSON#person3"], &json!(["person1", "person3"])));
}

#[test]
fn a_photo_that_follows_a_merge_loses_the_tags_of_before_and_gets_them_back() {
    let faces = [good().like(4, 0.9), good().like(3, 0.9), good().like(1, 0.9)];
    let mut table = table_of(faces.clone(), &Merges::default());
    let before = table.text();
    let events = photo(BEACH).of(faces).happened();
    let persons = state_of(&beach(), &events).unwrap().persons;
    let follow = |table: &mut Table, merges: &Merges| {
        table.commit(&Projection::default().photo(processed(&events), noon(), &persons, &[], merges));
    };
    let mut known = merges(&[(3, 4), (1, 3)]);
    follow(&mut table, &known);
    assert_eq!(shown(&table), (vec!["PERSON#person1"], &json!(["person1"])));
    known.evolve(&undone(&merged(3, 4, Seq(1)), Seq(3)));
    follow(&mut table, &known);
    assert_eq!(shown(&table), (vec!["PERSON#person1", "PERSON#person4"], &json!(["person1", "person4"])));
    known.evolve(&undone(&merged(1, 3, Seq(2)), Seq(4)));
    follow(&mut table, &known);
    assert_eq!(table.text(), before);
}

/// The first version was committed before the merge and shows whoever was joined; nobody is left in the second.
#[test]
fn a_newer_version_removes_every_guise_of_whoever_left() {
    let first = photo(BEACH).of([good().like(4, 0.9), good().like(2, 0.9)]).happened();
    let second = photo(BEACH).version("v2").of([good().like(5, 0.9)]).happened();
    let known = merges(&[(1, 4), (5, 2)]);
    for already_followed in [false, true] {
        let then = if already_followed { known.clone() } else { Merges::default() };
        let mut table = table_of([good().like(4, 0.9), good().like(2, 0.9)], &then);
        let before = state_of(&beach(), &first);
        table.commit(&Projection::default().project(before.as_ref(), &second[0], noon(), &known));
        assert_eq!(shown(&table), (vec!["PERSON#person5"], &json!(["person5"])), "{already_followed}");
    }
}

#[test]
fn a_superseded_event_leaves_no_guise_that_is_not_shown() {
    let first = photo(BEACH).of([good().like(4, 0.9), good().like(2, 0.9)]).happened();
    let second = photo(BEACH).version("v2").of([good().like(1, 0.9)]).happened();
    let now = state_of(&beach(), &[first.clone(), second].concat()).unwrap();
    let gone = Projection::default().superseded(&now, processed(&first), &merges(&[(3, 4), (1, 3)]));
    let tag = |number| Mutation::Delete { key: Key::tagging(&beach(), person(number)) };
    assert_eq!(gone, [tag(2), tag(3), tag(4)], "person1 is shown");
}

/// Persons 1 to 3 with rows, one of which has things of others, and two users.
fn platform() -> (Table, People) {
    let (mut table, mut people) = (Table::of_platform([&beach()]), People::default());
    for event in photo(BEACH).of([good(), good(), good()]).happened() {
        people.evolve(&event, noon());
        table.commit(&Projection::default().project(None, &event, noon(), &Merges::default()));
    }
    let theirs = fields(json!({ "birthday": "1815-12-10", "s3Key": "persons/person3.jpg", "votes": [1, 2.5] }));
    table.rows.get_mut(&Key::person(person(3))).unwrap().extend(theirs);
    for (email, number) in [("ada@example.org", 3), ("bob@example.org", 1), ("eve@example.org", 3)] {
        let row = json!({ "entityType": "USER", "personId": person(number), "karma": 7 });
        table.rows.insert(Key::user(&email.parse().unwrap()), fields(row));
    }
    (table, people)
}

/// Joins two persons as it would be committed.
fn join(table: &mut Table, people: &mut People, into: u32, from: u32, users: &[&str]) -> PersonsMerged {
    let merge = PersonsMerged {
        row: table.rows[&Key::person(person(from))].clone(),
        users: users.iter().map(|user| user.parse().unwrap()).collect(),
        ..merged(into, from, Seq(u64::from(from)))
    };
    people.evolve(&Event::PersonsMerged(merge.clone()), noon());
    table.commit(&Projection::default().merged(&merge, people));
    merge
}

fn part(table: &mut Table, people: &mut People, merge: &PersonsMerged) {
    people.evolve(&undone(merge, Seq(9)), noon());
    table.commit(&Projection::default().unmerged(merge, &merge.users, people));
}

fn person_of(table: &Table, user: &str) -> serde_json::Value {
    table.rows[&Key::user(&user.parse().unwrap())]["personId"].clone()
}

#[test]
fn merged_and_unmerged_gives_back_every_byte() {
    let (mut table, mut people) = platform();
    let before = table.text();
    let merge = join(&mut table, &mut people, 1, 3, &["ada@example.org", "eve@example.org"]);
    assert!(!table.rows.contains_key(&Key::person(person(3))));
    assert_eq!([person_of(&table, "ada@example.org"), person_of(&table, "eve@example.org")], ["person1", "person1"]);
    part(&mut table, &mut people, &merge);
    assert_eq!(table.text(), before);
}

#[test]
fn a_user_who_is_somebody_else_meanwhile_stays_so() {
    let (mut table, mut people) = platform();
    let merge = join(&mut table, &mut people, 1, 3, &["ada@example.org", "eve@example.org"]);
    people.evolve(&undone(&merge, Seq(9)), noon());
    table.commit(&Projection::default().unmerged(&merge, &["ada@example.org".parse().unwrap()], &people));
    assert_eq!([person_of(&table, "ada@example.org"), person_of(&table, "eve@example.org")], ["person3", "person1"]);
}

#[test]
fn a_chain_is_taken_back_from_either_end() {
    for is_first_first in [true, false] {
        let (mut table, mut people) = platform();
        let before = table.text();
        let first = join(&mut table, &mut people, 2, 3, &["ada@example.org", "eve@example.org"]);
        let second = join(&mut table, &mut people, 1, 2, &["ada@example.org", "eve@example.org"]);
        assert_eq!(person_of(&table, "ada@example.org"), "person1");
        if is_first_first {
            part(&mut table, &mut people, &first);
            assert!(!table.rows.contains_key(&Key::person(person(2))), "person2 is person1 still");
            part(&mut table, &mut people, &PersonsMerged { users: Vec::new(), ..second });
        } else {
            part(&mut table, &mut people, &second);
            part(&mut table, &mut people, &first);
        }
        assert_eq!(table.text(), before, "{is_first_first}");
    }
}

#[test]
fn the_name_goes_along_and_comes_back() {
    let (mut table, mut people) = platform();
    let named = sparks_domain::PersonRenamed {
        v: sparks_domain::Version,
        person: person(3),
        identity_seq: Seq(1),
        from: "person3".into(),
        to: "Ada".into(),
    };
    people.evolve(&Event::PersonRenamed(named.clone()), noon());
    table.commit(&Projection::default().project(None, &Event::PersonRenamed(named), noon(), &Merges::default()));
    let before = table.text();
    let merge = join(&mut table, &mut people, 2, 3, &[]);
    assert_eq!(table.rows[&Key::person(person(2))]["displayName"], "Ada");
    part(&mut table, &mut people, &merge);
    assert_eq!(table.text(), before);
}
