//! A new decision about a photo that is decided already.

use sparks_domain::{Event, Merges, PhotoProcessed, Policy, RedecidedPhoto, Refusal, Seq, redecide};

use crate::given_when_then::{
    BEACH, FaceInput, Photo, blurred_face, deletion, describe, events_of, given, good_face, merged, person, photo,
    policy, processed, state_of,
};

/// A face at this position of the photo, from the left.
fn at(position: u8, mut input: FaceInput) -> FaceInput {
    input.face.bounds = [f32::from(position) * 0.2, 0.1, 0.15, 0.15].into();
    input
}

/// Decides about a photo, then again with another analysis.
fn decide_twice(before: Photo, now: Photo, merges: &Merges, policy: &Policy) -> RedecidedPhoto {
    let history = events_of(before.clone());
    let state = state_of(&before.image, &history).unwrap();
    redecide(&state, processed(&history), now.identification, merges, policy).unwrap()
}

fn described(redecided: &RedecidedPhoto) -> Vec<String> {
    redecided.events.iter().map(describe).collect()
}

fn photo_of(number: u32) -> Photo {
    photo(BEACH).with_faces([at(0, good_face().candidate(number, 0.95))]).counter(9)
}

#[test]
fn unmatched_face_keeps_its_person_and_becomes_a_template() {
    let redecided = decide_twice(
        photo_of(7),
        photo(BEACH).with_faces([at(0, good_face())]).counter(9),
        &Merges::default(),
        &policy(),
    );
    assert_eq!(described(&redecided), ["processed: matches person7 (template)"]);
    assert!(redecided.has_changes, "it was not a template");
    assert_eq!(redecided.pairs, [(0, 0)]);
}

#[test]
fn poor_face_keeps_its_person_without_becoming_a_template() {
    let redecided = decide_twice(
        photo_of(7),
        photo(BEACH).with_faces([at(0, blurred_face())]).counter(9),
        &Merges::default(),
        &policy(),
    );
    assert_eq!(described(&redecided), ["processed: matches person7"]);
    assert!(!redecided.has_changes);
}

#[test]
fn face_that_matches_another_person_changes_person() {
    let now = photo(BEACH).with_faces([at(0, good_face().candidate(3, 0.95))]).counter(9);
    let redecided = decide_twice(photo_of(7), now, &Merges::default(), &policy());
    assert_eq!(described(&redecided), ["processed: matches person3"]);
    assert!(redecided.has_changes);
}

#[test]
fn ambiguous_face_keeps_its_person() {
    let policy = Policy { margin: 0.1, ..policy() };
    for second in [7, 8] {
        let now = photo(BEACH).with_faces([at(0, good_face().candidate(3, 0.8).candidate(second, 0.75))]).counter(9);
        assert_eq!(
            described(&decide_twice(photo_of(7), now, &Merges::default(), &policy)),
            ["processed: matches person7"]
        );
    }
    let unidentified = photo(BEACH).with_faces([at(0, blurred_face())]);
    let both = good_face().candidate(3, 0.8).candidate(8, 0.75);
    let now = photo(BEACH).with_faces([at(0, both)]).counter(9);
    assert_eq!(described(&decide_twice(unidentified, now, &Merges::default(), &policy)), ["processed: ambiguous"]);
}

#[test]
fn face_keeps_the_person_decided_before_a_merge() {
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let now = photo(BEACH).with_faces([at(0, good_face().candidate(3, 0.95))]).counter(9);
    let redecided = decide_twice(photo_of(7), now, &merges, &policy());
    assert_eq!(described(&redecided), ["processed: matches person7"], "merged into person3");
    assert!(!redecided.has_changes);
}

#[test]
fn newly_detected_face_creates_a_person() {
    let now = photo(BEACH).with_faces([at(0, good_face().candidate(7, 0.95)), at(2, good_face())]).counter(9);
    let redecided = decide_twice(photo_of(7), now, &Merges::default(), &policy());
    assert_eq!(
        described(&redecided),
        ["allocated: person10 crop 2 templates 2", "processed: matches person7, creates person10 (template)"]
    );
    assert!(redecided.has_changes);
    assert_eq!(redecided.pairs, [(0, 0)]);
}

#[test]
fn face_that_is_no_longer_detected_is_a_change() {
    let before = photo(BEACH)
        .with_faces([at(0, good_face().candidate(7, 0.95)), at(2, good_face().candidate(3, 0.95))])
        .counter(9);
    let now = photo(BEACH).with_faces([at(2, good_face().candidate(3, 0.95))]).counter(9);
    let redecided = decide_twice(before, now, &Merges::default(), &policy());
    assert_eq!(described(&redecided), ["processed: matches person3"]);
    assert_eq!((redecided.has_changes, redecided.pairs), (true, vec![(1, 0)]));
}

#[test]
fn photo_facts_stay_and_face_numbers_continue() {
    let history = events_of(photo_of(7));
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let mut identification = photo_of(7).identification;
    identification.analyzer = "another".into();
    let before = processed(&history);
    let redecided = redecide(&state, before, identification, &Merges::default(), &policy()).unwrap();
    let now = processed(&redecided.events);
    assert!(redecided.has_changes, "another analyzer");
    assert_eq!((now.first_face, now.follows), (1, Some(Seq(1))));
    let same = PhotoProcessed {
        analyzer: before.analyzer.clone(),
        first_face: before.first_face,
        follows: before.follows,
        ..now.clone()
    };
    assert_eq!(same, *before);
    assert_ne!(redecided.events[0].id(), history[0].id());

    // The recorded decision, made again, has no changes.
    let history: Vec<Event> = history.into_iter().chain(redecided.events).collect();
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let previous = processed(&history[1..]);
    let mut identification = photo_of(7).identification;
    identification.analyzer = "another".into();
    let again = redecide(&state, previous, identification, &Merges::default(), &policy()).unwrap();
    assert!(!again.has_changes);
    assert_eq!(state.persons, [person(7)]);
}

#[test]
fn deleted_photo_is_not_redecided() {
    let history = events_of(photo_of(7));
    let deleted = given(history.clone()).when(deletion(BEACH)).events();
    let previous = processed(&history).clone();
    let history: Vec<Event> = history.into_iter().chain(deleted).collect();
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let refused = redecide(&state, &previous, photo_of(7).identification, &Merges::default(), &policy());
    assert_eq!(refused, Err(Refusal::Deleted));
}
