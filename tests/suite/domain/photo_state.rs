//! The state of photos and the registry of persons after events.

use sparks_domain::{
    Event, FacesReviewed, PersonRegistry, PersonRenamed, PhotoState, PhotoStatus, RejectCode::Damaged, ReviewedFace,
    Seq, Timestamp, Verdict, Version,
};

use crate::given_when_then::{BEACH, events_of, good_face, merged, person, photo, small_face, undone};

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
fn processed_photo_has_its_persons() {
    let state = evolve(
        None,
        4,
        &photo(BEACH).version("v3").sequencer("0C").with_faces([good_face(), good_face()]).into_events(),
    );
    let expected = PhotoState {
        version: "v3".into(),
        sequencer: Some("0C".into()),
        status: PhotoStatus::Processed,
        seq: Seq(5),
        projected_seq: Some(Seq(5)),
        faces: 2,
        persons: vec![person(1), person(2)],
        adopted: vec![],
    };
    assert_eq!(state, Some(expected));
}

#[test]
fn newer_version_replaces_the_projected_event() {
    let first = evolve(None, 1, &photo(BEACH).with_faces([good_face().candidate(1, 0.9)]).into_events());
    let second =
        evolve(first, 2, &photo(BEACH).version("v2").with_faces([good_face().candidate(2, 0.9)]).into_events())
            .unwrap();
    assert_eq!((second.projected_seq, second.persons), (Some(Seq(2)), vec![person(2)]));
}

#[test]
fn rejected_photo_has_no_projected_event() {
    let state = evolve(None, 1, &events_of(photo(BEACH).rejected(Damaged))).unwrap();
    assert_eq!((state.status, state.projected_seq, state.persons), (PhotoStatus::Rejected(Damaged), None, vec![]));
}

#[test]
fn rejected_newer_version_keeps_the_projected_event() {
    let first = evolve(None, 1, &photo(BEACH).with_faces([good_face().candidate(6, 0.9)]).into_events());
    let rejected = evolve(first, 2, &events_of(photo(BEACH).version("v2").rejected(Damaged))).unwrap();
    assert_eq!((rejected.version.as_str(), rejected.seq), ("v2", Seq(2)));
    assert_eq!((rejected.projected_seq, rejected.persons), (Some(Seq(1)), vec![person(6)]));
}

#[test]
fn identity_events_leave_photo_state_unchanged() {
    let events = photo(BEACH).with_faces([good_face()]).into_events();
    let state = evolve(None, 1, &events);
    assert!(state.is_some());
    assert_eq!(evolve(state.clone(), 3, &[events[0].clone(), renamed(1, "Ada")]), state);
    assert_eq!(evolve(None, 3, &[events[0].clone()]), None);
}

#[test]
fn state_reads_back_unchanged() {
    let processed = evolve(None, 1, &photo(BEACH).sequencer("0A").with_faces([good_face()]).into_events());
    let rejected = evolve(processed.clone(), 3, &events_of(photo(BEACH).version("v2").rejected(Damaged)));
    let bare = evolve(None, 1, &events_of(photo(BEACH).rejected(Damaged)));
    for state in [processed, rejected, bare] {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<Option<PhotoState>>(&text).unwrap(), state, "{text}");
    }
}

#[test]
fn allocated_persons_have_number_name_and_time() {
    let mut registry = PersonRegistry::default();
    assert_eq!(registry.highest_number(), 0);
    for event in photo(BEACH).with_faces([good_face(), good_face()]).counter(2).taken_numbers([4]).into_events() {
        registry.evolve(&event, at(100));
    }
    let persons: Vec<_> = registry.iter().map(|(id, p)| (id.number(), p.display_name, p.created)).collect();
    assert_eq!(persons, [(3, "person3".into(), at(100)), (5, "person5".into(), at(100))]);
    assert_eq!(registry.highest_number(), 5);
    assert_eq!(registry.get(person(4)), None);
}

#[test]
fn renaming_changes_the_name_only() {
    let mut registry = PersonRegistry::default();
    registry.evolve(&photo(BEACH).with_faces([good_face()]).into_events()[0], at(100));
    registry.evolve(&renamed(1, "Ada"), at(200));
    let known = registry.get(person(1)).expect("person1");
    assert_eq!((known.display_name.as_str(), known.created), ("Ada", at(100)));
}

#[test]
fn renaming_an_unknown_person_does_nothing() {
    let mut registry = PersonRegistry::default();
    registry.evolve(&renamed(8, "Eve"), at(1));
    assert_eq!(registry, PersonRegistry::default());
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
fn review_adds_persons_to_the_photo() {
    let first =
        evolve(None, 1, &photo(BEACH).with_faces([good_face().candidate(6, 0.9), small_face()]).into_events()).unwrap();
    let again = evolve(Some(first.clone()), 2, &[reviewed(1, &[2, 6, 2])]).unwrap();
    assert_eq!(again, PhotoState { seq: Seq(2), persons: vec![person(2), person(6)], ..first });
    assert_eq!(evolve(None, 1, &[reviewed(1, &[2])]), None, "a review needs a photo");
}

#[test]
fn merges_leave_photo_state_unchanged() {
    let first = evolve(None, 1, &photo(BEACH).with_faces([good_face().candidate(6, 0.9)]).into_events());
    let merge = merged(2, 6, Seq(1));
    let after = evolve(first.clone(), 2, &[Event::PersonsMerged(merge.clone()), undone(&merge, Seq(2))]);
    assert_eq!(after, first);
}

/// Returns persons 1 to 3, some with names.
fn registry(names: &[(u32, &str)]) -> PersonRegistry {
    let mut registry = PersonRegistry::default();
    for event in photo(BEACH).with_faces([good_face(), good_face(), good_face()]).into_events() {
        registry.evolve(&event, at(100));
    }
    for (number, name) in names {
        registry.evolve(&renamed(*number, name), at(200));
    }
    registry
}

fn name(registry: &PersonRegistry, number: u32) -> String {
    registry.get(person(number)).expect("a person").display_name
}

#[test]
fn merged_person_is_not_listed_until_unmerged() {
    let mut registry = self::registry(&[]);
    let merge = merged(1, 3, Seq(1));
    registry.evolve(&Event::PersonsMerged(merge.clone()), at(300));
    let numbers: Vec<u32> = registry.iter().map(|(id, _)| id.number()).collect();
    assert_eq!((numbers, registry.len()), (vec![1, 2], 2));
    assert_eq!(registry.highest_number(), 3, "numbers are not reused");
    registry.evolve(&undone(&merge, Seq(2)), at(400));
    assert_eq!((registry.iter().count(), registry.len()), (3, 3));
    assert_eq!(registry.get(person(3)).map(|p| p.created), Some(at(100)));
}

#[test]
fn unnamed_person_shows_the_name_of_a_merged_member() {
    let (first, second) = (merged(2, 3, Seq(1)), merged(1, 2, Seq(2)));
    let mut nameless = registry(&[(3, "Ada")]);
    nameless.evolve(&Event::PersonsMerged(first.clone()), at(300));
    assert_eq!(name(&nameless, 2), "Ada");
    nameless.evolve(&Event::PersonsMerged(second.clone()), at(300));
    assert_eq!(name(&nameless, 1), "Ada", "through a second merge");
    nameless.evolve(&undone(&first, Seq(3)), at(400));
    assert_eq!([1, 2, 3].map(|n| name(&nameless, n)), ["person1", "person2", "Ada"]);

    let mut named = registry(&[(1, "Bob"), (3, "Ada")]);
    named.evolve(&Event::PersonsMerged(merged(1, 3, Seq(1))), at(300));
    assert_eq!(name(&named, 1), "Bob", "the own name comes first");
}

#[test]
fn name_given_after_a_merge_stays_with_the_survivor() {
    let mut registry = self::registry(&[(2, "Ada")]);
    let merge = merged(1, 2, Seq(1));
    registry.evolve(&Event::PersonsMerged(merge.clone()), at(300));
    registry.evolve(&renamed(1, "Countess"), at(350));
    assert_eq!(name(&registry, 1), "Countess");
    registry.evolve(&undone(&merge, Seq(2)), at(400));
    assert_eq!([1, 2].map(|n| name(&registry, n)), ["Countess", "Ada"]);
}
