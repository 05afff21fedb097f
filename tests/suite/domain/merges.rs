//! Who turned out to be whom.

use proptest::prelude::*;
use sparks_domain::{Event, Merges, PersonId, PersonsMerged, Seq};

use crate::story::{merged, person, undone};

/// The merges after these events.
fn after<'a>(events: impl IntoIterator<Item = &'a Event>) -> Merges {
    let mut merges = Merges::default();
    for event in events {
        merges.evolve(event);
    }
    merges
}

fn join(into: u32, from: u32, after: u64) -> (PersonsMerged, Event) {
    let merge = merged(into, from, Seq(after));
    (merge.clone(), Event::PersonsMerged(merge))
}

fn now(merges: &Merges) -> [u32; 4] {
    [1, 2, 3, 4].map(|number| merges.now(person(number)).number())
}

fn numbers(persons: impl IntoIterator<Item = PersonId>) -> Vec<u32> {
    persons.into_iter().map(PersonId::number).collect()
}

#[test]
fn a_chain_ends_with_its_last() {
    let merges = after(&[join(3, 4, 1).1, join(2, 3, 2).1, join(1, 2, 3).1]);
    assert_eq!(now(&merges), [1, 1, 1, 1]);
    assert_eq!(numbers(merges.all_now(&[person(4), person(2), person(9)])), [1, 9], "each once, by number");
    assert!(merges.is_absorbed(person(4)) && !merges.is_absorbed(person(1)));
}

#[test]
fn a_merge_in_the_middle_of_a_chain_is_taken_back_alone() {
    let (middle, told) = join(2, 3, 2);
    let mut merges = after(&[join(3, 4, 1).1, told, join(1, 2, 3).1]);
    merges.evolve(&undone(&middle, Seq(4)));
    assert_eq!(now(&merges), [1, 1, 3, 3]);
    assert_eq!(numbers(merges.members(person(1))), [1, 2]);
    assert_eq!(numbers(merges.members(person(3))), [3, 4]);
}

#[test]
fn a_merge_taken_back_twice_is_taken_back_once() {
    let (merge, told) = join(1, 2, 1);
    let once = after(&[told.clone(), undone(&merge, Seq(2))]);
    assert_eq!(after(&[told, undone(&merge, Seq(2)), undone(&merge, Seq(3))]), once);
    assert_eq!(now(&once), [1, 2, 3, 4]);
}

#[test]
fn whoever_was_parted_may_be_joined_again_and_the_first_end_does_not_end_the_second() {
    let ((first, told), (second, again)) = (join(1, 2, 1), join(1, 2, 3));
    let merges = after(&[told, undone(&first, Seq(2)), again.clone(), undone(&first, Seq(4))]);
    assert_eq!(now(&merges), [1, 1, 3, 4]);
    assert_eq!(merges.get(again.id()), Some((person(1), person(2))));
    assert_eq!(merges.get(Event::PersonsMerged(first).id()), None);
    let mut parted = merges;
    parted.evolve(&undone(&second, Seq(5)));
    assert_eq!(now(&parted), [1, 2, 3, 4]);
}

#[test]
fn guises_are_all_whose_tag_a_photo_may_have() {
    let (merge, told) = join(1, 2, 1);
    let merges = after(&[told, undone(&merge, Seq(2)), join(2, 4, 3).1, join(3, 2, 4).1]);
    assert_eq!(now(&merges), [1, 3, 3, 3]);
    assert_eq!(numbers(merges.guises(person(4))), [1, 2, 3, 4], "also whom they were taken for before");
    assert_eq!(numbers(merges.guises(person(3))), [3]);
    assert_eq!(numbers(merges.members(person(3))), [2, 3, 4]);
    assert_eq!(numbers(merges.members(person(1))), [1]);
    assert_eq!(numbers(merges.absorbed().map(|(id, _)| id)), [2, 4]);
}

#[test]
fn nobody_is_joined_into_themselves_in_a_circle() {
    let merges = after(&[join(1, 2, 1).1, join(2, 1, 2).1, join(1, 1, 3).1]);
    assert_eq!(now(&merges), [1, 1, 3, 4]);
}

#[test]
fn whoever_was_parted_is_named_as_they_are_now() {
    let (merge, told) = join(2, 3, 1);
    let merges = after(&[told, undone(&merge, Seq(2)), join(1, 2, 3).1]);
    assert_eq!(merges.parted().collect::<Vec<_>>(), [(person(1), person(3))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_taken_back_leaves_everybody_who_they_were(
        history in prop::collection::vec((1..9_u32, 1..9_u32, prop::bool::weighted(0.2)), 0..12),
        (a, b) in (1..9_u32, 1..9_u32),
    ) {
        let (mut merges, mut seq) = (Merges::default(), 0);
        for (a, b, is_taken_back) in history {
            seq += 1;
            if let Some(merge) = possible(&merges, a, b, seq) {
                merges.evolve(&Event::PersonsMerged(merge.clone()));
                if is_taken_back {
                    merges.evolve(&undone(&merge, Seq(seq)));
                }
            }
        }
        let who = |merges: &Merges| (1..9).map(|n| merges.now(person(n))).collect::<Vec<_>>();
        let members = |merges: &Merges| (1..9).map(|n| merges.members(person(n))).collect::<Vec<_>>();
        let before = (who(&merges), members(&merges));
        if let Some(merge) = possible(&merges, a, b, seq + 1) {
            merges.evolve(&Event::PersonsMerged(merge.clone()));
            prop_assert_eq!(merges.now(merge.from), merge.into);
            prop_assert_ne!(&who(&merges), &before.0);
            merges.evolve(&undone(&merge, Seq(seq + 2)));
        }
        prop_assert_eq!((who(&merges), members(&merges)), before);
    }
}

/// The merge of two who are not one yet.
fn possible(merges: &Merges, a: u32, b: u32, seq: u64) -> Option<PersonsMerged> {
    let (a, b) = (merges.now(person(a)).number(), merges.now(person(b)).number());
    (a != b).then(|| merged(a.min(b), a.max(b), Seq(seq)))
}
