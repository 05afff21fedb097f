//! A photo that is decided, decided anew.

use sparks_domain::{Anew, Event, Merges, PhotoProcessed, Policy, Refusal, Seq, decide_anew};

use crate::story::{
    BEACH, Photo, Seen, blurred, deletion, given, good, happened, merged, person, photo, policy, processed, state_of,
    tell,
};

/// A face at this place of the photo, from the left.
fn at(place: u8, mut seen: Seen) -> Seen {
    seen.face.bounds = [f32::from(place) * 0.2, 0.1, 0.15, 0.15].into();
    seen
}

/// The photo as another engine saw it, and what is said of it anew.
fn anew(before: Photo, now: Photo, merges: &Merges, policy: &Policy) -> Anew {
    let history = happened(before.clone());
    let state = state_of(&before.image, &history).unwrap();
    decide_anew(&state, processed(&history), now.recognition, merges, policy).unwrap()
}

fn told(anew: &Anew) -> Vec<String> {
    anew.events.iter().map(tell).collect()
}

fn seen_as(number: u32) -> Photo {
    photo(BEACH).of([at(0, good().like(number, 0.95))]).counter(9)
}

#[test]
fn a_face_that_is_like_nobody_stays_who_it_was_and_they_are_known_by_it() {
    let anew = anew(seen_as(7), photo(BEACH).of([at(0, good())]).counter(9), &Merges::default(), &policy());
    assert_eq!(told(&anew), ["processed: is person7 (template)"]);
    assert!(anew.is_news, "they were not known by it");
    assert_eq!(anew.pairs, [(0, 0)]);
}

#[test]
fn a_poor_face_stays_who_it_was_and_nobody_is_known_by_it() {
    let anew = anew(seen_as(7), photo(BEACH).of([at(0, blurred())]).counter(9), &Merges::default(), &policy());
    assert_eq!(told(&anew), ["processed: is person7"]);
    assert!(!anew.is_news);
}

#[test]
fn a_face_that_is_clearly_somebody_else_is_somebody_else() {
    let now = photo(BEACH).of([at(0, good().like(3, 0.95))]).counter(9);
    let anew = anew(seen_as(7), now, &Merges::default(), &policy());
    assert_eq!(told(&anew), ["processed: is person3"]);
    assert!(anew.is_news);
}

#[test]
fn a_face_that_may_be_several_stays_who_it_was_and_nobody_is_known_by_it() {
    let policy = Policy { margin: 0.1, ..policy() };
    for second in [7, 8] {
        let now = photo(BEACH).of([at(0, good().like(3, 0.8).like(second, 0.75))]).counter(9);
        assert_eq!(told(&anew(seen_as(7), now, &Merges::default(), &policy)), ["processed: is person7"]);
    }
    let (nobody, both) = (photo(BEACH).of([at(0, blurred())]), good().like(3, 0.8).like(8, 0.75));
    let now = photo(BEACH).of([at(0, both)]).counter(9);
    assert_eq!(told(&anew(nobody, now, &Merges::default(), &policy)), ["processed: ambiguous"]);
}

#[test]
fn merges_stay_and_a_face_keeps_the_person_it_was_decided_to_be() {
    let mut merges = Merges::default();
    merges.evolve(&Event::PersonsMerged(merged(3, 7, Seq(1))));
    let now = photo(BEACH).of([at(0, good().like(3, 0.95))]).counter(9);
    let anew = anew(seen_as(7), now, &merges, &policy());
    assert_eq!(told(&anew), ["processed: is person7"], "who is person3");
    assert!(!anew.is_news);
}

#[test]
fn a_face_nobody_had_seen_founds_a_person() {
    let now = photo(BEACH).of([at(0, good().like(7, 0.95)), at(2, good())]).counter(9);
    let anew = anew(seen_as(7), now, &Merges::default(), &policy());
    assert_eq!(
        told(&anew),
        ["allocated: person10 shown by 2 known by 2", "processed: is person7, founds person10 (template)"]
    );
    assert!(anew.is_news);
    assert_eq!(anew.pairs, [(0, 0)]);
}

#[test]
fn a_face_that_is_not_seen_any_more_is_news() {
    let before = photo(BEACH).of([at(0, good().like(7, 0.95)), at(2, good().like(3, 0.95))]).counter(9);
    let now = photo(BEACH).of([at(2, good().like(3, 0.95))]).counter(9);
    let anew = anew(before, now, &Merges::default(), &policy());
    assert_eq!(told(&anew), ["processed: is person3"]);
    assert_eq!((anew.is_news, anew.pairs), (true, vec![(1, 0)]));
}

#[test]
fn the_photo_stays_the_same_and_faces_are_numbered_on() {
    let history = happened(seen_as(7));
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let mut recognition = seen_as(7).recognition;
    recognition.analyzer = "another".into();
    let before = processed(&history);
    let anew = decide_anew(&state, before, recognition, &Merges::default(), &policy()).unwrap();
    let now = processed(&anew.events);
    assert!(anew.is_news, "somebody else looked");
    assert_eq!((now.first_face, now.follows), (1, Some(Seq(1))));
    let same = PhotoProcessed {
        analyzer: before.analyzer.clone(),
        first_face: before.first_face,
        follows: before.follows,
        ..now.clone()
    };
    assert_eq!(same, *before);
    assert_ne!(anew.events[0].id(), history[0].id());

    // What is decided anew and recorded is no news.
    let history: Vec<Event> = history.into_iter().chain(anew.events).collect();
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let shown = processed(&history[1..]);
    let mut recognition = seen_as(7).recognition;
    recognition.analyzer = "another".into();
    let again = decide_anew(&state, shown, recognition, &Merges::default(), &policy()).unwrap();
    assert!(!again.is_news);
    assert_eq!(state.persons, [person(7)]);
}

#[test]
fn a_photo_that_is_gone_stays_gone() {
    let history = happened(seen_as(7));
    let gone = given(history.clone()).when(deletion(BEACH)).events();
    let shown = processed(&history).clone();
    let history: Vec<Event> = history.into_iter().chain(gone).collect();
    let state = state_of(&BEACH.parse().unwrap(), &history).unwrap();
    let refused = decide_anew(&state, &shown, seen_as(7).recognition, &Merges::default(), &policy());
    assert_eq!(refused, Err(Refusal::Deleted));
}
