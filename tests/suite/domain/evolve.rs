//! What is known after events.

use sparks_domain::{
    Event, FacesReviewed, Outcome, People, PersonRenamed, PhotoState, RejectCode::Damaged, ReviewedFace, Seq,
    Timestamp, Verdict, Version,
};

use crate::story::{BEACH, good, happened, merged, person, photo, small, undone};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn renamed(number: u32, to: &str) -> Event {
    let from = person(number).to_string();
    Event::PersonRenamed(PersonRenamed {
        v: Version,
        person: person(number),
        identity_seq: Seq(1),
        from,
        to: to.into(),
    })
}

fn evolve(before: Option<PhotoState>, seq: u64, events: &[Event]) -> Option<PhotoState> {
    (seq..).map(Seq).zip(events).fold(before, |state, (seq, event)| PhotoState::evolve(state, seq, event))
}

#[test]
fn a_processed_photo_shows_its_persons() {
    let state = evolve(None, 4, &photo(BEACH).version("v3").sequencer("0C").of([good(), good()]).happened());
    let expected = PhotoState {
        version: "v3".into(),
        sequencer: Some("0C".into()),
        outcome: Outcome::Processed,
        seq: Seq(5),
        shows: Some(Seq(5)),
        faces: 2,
        persons: vec![person(1), person(2)],
        adopted: vec![],
    };
    assert_eq!(state, Some(expected));
}

#[test]
fn a_newer_version_replaces_what_is_shown() {
    let first = evolve(None, 1, &photo(BEACH).of([good().like(1, 0.9)]).happened());
    let second = evolve(first, 2, &photo(BEACH).version("v2").of([good().like(2, 0.9)]).happened()).unwrap();
    assert_eq!((second.shows, second.persons), (Some(Seq(2)), vec![person(2)]));
}

#[test]
fn a_rejected_photo_shows_nothing() {
    let state = evolve(None, 1, &happened(photo(BEACH).rejected(Damaged))).unwrap();
    assert_eq!((state.outcome, state.shows, state.persons), (Outcome::Rejected(Damaged), None, vec![]));
}

#[test]
fn a_rejected_newer_version_leaves_what_was_shown() {
    let first = evolve(None, 1, &photo(BEACH).of([good().like(6, 0.9)]).happened());
    let rejected = evolve(first, 2, &happened(photo(BEACH).version("v2").rejected(Damaged))).unwrap();
    assert_eq!((rejected.version.as_str(), rejected.seq), ("v2", Seq(2)));
    assert_eq!((rejected.shows, rejected.persons), (Some(Seq(1)), vec![person(6)]));
}

#[test]
fn events_about_persons_leave_a_photo_as_it_was() {
    let events = photo(BEACH).of([good()]).happened();
    let state = evolve(None, 1, &events);
    assert!(state.is_some());
    assert_eq!(evolve(state.clone(), 3, &[events[0].clone(), renamed(1, "Ada")]), state);
    assert_eq!(evolve(None, 3, &[events[0].clone()]), None);
}

#[test]
fn a_state_reads_back_as_itself() {
    let processed = evolve(None, 1, &photo(BEACH).sequencer("0A").of([good()]).happened());
    let rejected = evolve(processed.clone(), 3, &happened(photo(BEACH).version("v2").rejected(Damaged)));
    let bare = evolve(None, 1, &happened(photo(BEACH).rejected(Damaged)));
    for state in [processed, rejected, bare] {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<Option<PhotoState>>(&text).unwrap(), state, "{text}");
    }
}

#[test]
fn everybody_is_known_since_their_allocation_by_their_number() {
    let mut people = People::default();
    assert_eq!(people.highest(), 0);
    for event in photo(BEACH).of([good(), good()]).counter(2).taken([4]).happened() {
        people.evolve(&event, at(100));
    }
    let everybody: Vec<_> = people.iter().map(|(id, p)| (id.number(), p.display_name, p.created)).collect();
    assert_eq!(everybody, [(3, "person3".into(), at(100)), (5, "person5".into(), at(100))]);
    assert_eq!(people.highest(), 5);
    assert_eq!(people.get(person(4)), None);
}

#[test]
fn a_new_name_changes_the_name_only() {
    let mut people = People::default();
    people.evolve(&photo(BEACH).of([good()]).happened()[0], at(100));
    people.evolve(&renamed(1, "Ada"), at(200));
    let known = people.get(person(1)).expect("person1");
    assert_eq!((known.display_name.as_str(), known.created), ("Ada", at(100)));
}

#[test]
fn a_name_for_somebody_unknown_makes_nobody() {
    let mut people = People::default();
    people.evolve(&renamed(8, "Nobody"), at(1));
    assert_eq!(people, People::default());
}

fn reviewed(follows: u64, persons: &[u32]) -> Event {
    let face = |(n, number): (u16, &u32)| ReviewedFace {
        n,
        candidates: Vec::new(),
        threshold: 0.5,
        evidence: None,
        verdict: Verdict::Matched(person(*number)),
    };
    Event::FacesReviewed(FacesReviewed {
        v: Version,
        image_id: BEACH.parse().unwrap(),
        identity_seq: Seq(1),
        faces: (0..).zip(persons).map(face).collect(),
        follows: Seq(follows),
    })
}

#[test]
fn a_review_adds_persons_to_what_is_shown() {
    let first = evolve(None, 1, &photo(BEACH).of([good().like(6, 0.9), small()]).happened()).unwrap();
    let again = evolve(Some(first.clone()), 2, &[reviewed(1, &[2, 6, 2])]).unwrap();
    assert_eq!(again, PhotoState { seq: Seq(2), persons: vec![person(2), person(6)], ..first });
    assert_eq!(evolve(None, 1, &[reviewed(1, &[2])]), None, "a review of no photo is no photo");
}

#[test]
fn merges_leave_a_photo_as_it_was_decided() {
    let first = evolve(None, 1, &photo(BEACH).of([good().like(6, 0.9)]).happened());
    let merge = merged(2, 6, Seq(1));
    let after = evolve(first.clone(), 2, &[Event::PersonsMerged(merge.clone()), undone(&merge, Seq(2))]);
    assert_eq!(after, first);
}

/// Persons 1 to 3, of whom some have names.
fn people(names: &[(u32, &str)]) -> People {
    let mut people = People::default();
    for event in photo(BEACH).of([good(), good(), good()]).happened() {
        people.evolve(&event, at(100));
    }
    for (number, name) in names {
        people.evolve(&renamed(*number, name), at(200));
    }
    people
}

fn name(people: &People, number: u32) -> String {
    people.get(person(number)).expect("somebody").display_name
}

#[test]
fn whoever_is_joined_into_another_is_nobody_of_their_own() {
    let mut people = people(&[]);
    let merge = merged(1, 3, Seq(1));
    people.evolve(&Event::PersonsMerged(merge.clone()), at(300));
    let everybody: Vec<u32> = people.iter().map(|(id, _)| id.number()).collect();
    assert_eq!((everybody, people.len()), (vec![1, 2], 2));
    assert_eq!(people.highest(), 3, "numbers are never given out twice");
    people.evolve(&undone(&merge, Seq(2)), at(400));
    assert_eq!((people.iter().count(), people.len()), (3, 3));
    assert_eq!(people.get(person(3)).map(|p| p.created), Some(at(100)));
}

#[test]
fn the_name_of_whoever_is_joined_is_taken_where_there_is_no_other() {
    let (first, second) = (merged(2, 3, Seq(1)), merged(1, 2, Seq(2)));
    let mut nameless = people(&[(3, "Ada")]);
    nameless.evolve(&Event::PersonsMerged(first.clone()), at(300));
    assert_eq!(name(&nameless, 2), "Ada");
    nameless.evolve(&Event::PersonsMerged(second.clone()), at(300));
    assert_eq!(name(&nameless, 1), "Ada", "through a third");
    nameless.evolve(&undone(&first, Seq(3)), at(400));
    assert_eq!([1, 2, 3].map(|n| name(&nameless, n)), ["person1", "person2", "Ada"]);

    let mut named = people(&[(1, "Bob"), (3, "Ada")]);
    named.evolve(&Event::PersonsMerged(merged(1, 3, Seq(1))), at(300));
    assert_eq!(name(&named, 1), "Bob", "a name of one's own comes first");
}

#[test]
fn a_name_given_to_both_stays_with_the_one_who_stays() {
    let mut people = people(&[(2, "Ada")]);
    let merge = merged(1, 2, Seq(1));
    people.evolve(&Event::PersonsMerged(merge.clone()), at(300));
    people.evolve(&renamed(1, "Countess"), at(350));
    assert_eq!(name(&people, 1), "Countess");
    people.evolve(&undone(&merge, Seq(2)), at(400));
    assert_eq!([1, 2].map(|n| name(&people, n)), ["Countess", "Ada"]);
}
