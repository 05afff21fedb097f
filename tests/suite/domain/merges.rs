//! Merges of persons, and their undo.

use proptest::prelude::*;
use sparks_domain::{Event, Merges, PersonId, PersonsMerged, Seq};

use crate::given_when_then::{merged, person, undone};

/// Returns the merges after these events.
fn after<'a>(events: impl IntoIterator<Item = &'a Event>) -> Merges {
    let mut merges = Merges::default();
    for event in events {
        merges.evolve(event);
    }
    merges
}

fn merge(into: u32, from: u32, after: u64) -> (PersonsMerged, Event) {
    let merge = merged(into, from, Seq(after));
    (merge.clone(), Event::PersonsMerged(merge))
}

fn current(merges: &Merges) -> [u32; 4] {
    [1, 2, 3, 4].map(|number| merges.current(person(number)).number())
}

fn numbers(persons: impl IntoIterator<Item = PersonId>) -> Vec<u32> {
    persons.into_iter().map(PersonId::number).collect()
}

#[test]
fn chained_merges_resolve_to_the_last_survivor() {
    let merges = after(&[merge(3, 4, 1).1, merge(2, 3, 2).1, merge(1, 2, 3).1]);
    assert_eq!(current(&merges), [1, 1, 1, 1]);
    assert_eq!(numbers(merges.all_current(&[person(4), person(2), person(9)])), [1, 9], "each once, by number");
    assert!(merges.is_absorbed(person(4)) && !merges.is_absorbed(person(1)));
}

#[test]
fn undoing_a_middle_merge_keeps_the_others() {
    let (middle, event) = merge(2, 3, 2);
    let mut merges = after(&[merge(3, 4, 1).1, event, merge(1, 2, 3).1]);
    merges.evolve(&undone(&middle, Seq(4)));
    assert_eq!(current(&merges), [1, 1, 3, 3]);
    assert_eq!(numbers(merges.members(person(1))), [1, 2]);
    assert_eq!(numbers(merges.members(person(3))), [3, 4]);
}

#[test]
fn undoing_a_merge_twice_changes_nothing() {
    let (first, event) = merge(1, 2, 1);
    let once = after(&[event.clone(), undone(&first, Seq(2))]);
    assert_eq!(after(&[event, undone(&first, Seq(2)), undone(&first, Seq(3))]), once);
    assert_eq!(current(&once), [1, 2, 3, 4]);
}

#[test]
fn repeated_undo_does_not_undo_a_second_merge() {
    let ((first, event), (second, again)) = (merge(1, 2, 1), merge(1, 2, 3));
    let merges = after(&[event, undone(&first, Seq(2)), again.clone(), undone(&first, Seq(4))]);
    assert_eq!(current(&merges), [1, 1, 3, 4]);
    assert_eq!(merges.get(again.id()), Some((person(1), person(2))));
    assert_eq!(merges.get(Event::PersonsMerged(first).id()), None);
    let mut merges = merges;
    merges.evolve(&undone(&second, Seq(5)));
    assert_eq!(current(&merges), [1, 2, 3, 4]);
}

#[test]
fn aliases_are_all_persons_a_photo_may_be_tagged_with() {
    let (first, event) = merge(1, 2, 1);
    let merges = after(&[event, undone(&first, Seq(2)), merge(2, 4, 3).1, merge(3, 2, 4).1]);
    assert_eq!(current(&merges), [1, 3, 3, 3]);
    assert_eq!(numbers(merges.aliases(person(4))), [1, 2, 3, 4], "also persons of undone merges");
    assert_eq!(numbers(merges.aliases(person(3))), [3]);
    assert_eq!(numbers(merges.members(person(3))), [2, 3, 4]);
    assert_eq!(numbers(merges.members(person(1))), [1]);
    assert_eq!(numbers(merges.absorbed().map(|(id, _)| id)), [2, 4]);
}

#[test]
fn circular_merges_are_ignored() {
    let merges = after(&[merge(1, 2, 1).1, merge(2, 1, 2).1, merge(1, 1, 3).1]);
    assert_eq!(current(&merges), [1, 1, 3, 4]);
}

#[test]
fn undone_pairs_are_current_persons() {
    let (first, event) = merge(2, 3, 1);
    let merges = after(&[event, undone(&first, Seq(2)), merge(1, 2, 3).1]);
    assert_eq!(merges.undone_pairs().collect::<Vec<_>>(), [(person(1), person(3))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn undo_restores_all_current_persons(
        history in prop::collection::vec((1..9_u32, 1..9_u32, prop::bool::weighted(0.2)), 0..12),
        (a, b) in (1..9_u32, 1..9_u32),
    ) {
        let (mut merges, mut seq) = (Merges::default(), 0);
        for (a, b, is_undone) in history {
            seq += 1;
            if let Some(merge) = possible(&merges, a, b, seq) {
                merges.evolve(&Event::PersonsMerged(merge.clone()));
                if is_undone {
                    merges.evolve(&undone(&merge, Seq(seq)));
                }
            }
        }
        let current = |merges: &Merges| (1..9).map(|n| merges.current(person(n))).collect::<Vec<_>>();
        let members = |merges: &Merges| (1..9).map(|n| merges.members(person(n))).collect::<Vec<_>>();
        let before = (current(&merges), members(&merges));
        if let Some(merge) = possible(&merges, a, b, seq + 1) {
            merges.evolve(&Event::PersonsMerged(merge.clone()));
            prop_assert_eq!(merges.current(merge.from), merge.into);
            prop_assert_ne!(&current(&merges), &before.0);
            merges.evolve(&undone(&merge, Seq(seq + 2)));
        }
        prop_assert_eq!((current(&merges), members(&merges)), before);
    }
}

/// Returns a merge of two persons, if they are not one already.
fn possible(merges: &Merges, a: u32, b: u32, seq: u64) -> Option<PersonsMerged> {
    let (a, b) = (merges.current(person(a)).number(), merges.current(person(b)).number());
    (a != b).then(|| merged(a.min(b), a.max(b), Seq(seq)))
}
