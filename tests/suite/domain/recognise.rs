//! How near is near enough, what a person is known by, and whom faces are that nobody knew.

use sparks_domain::{
    Candidate, Event, Evidence, Gallery, Merges, Policy, Review, Scale, Seq, Signature, Threshold, UnknownFace, review,
};

use crate::story::{BEACH, Seen, given, good, merged, nothing, person, photo, policy, small, tell};

/// The nearest must be nearer than the next by a quarter.
fn strict() -> Policy {
    Policy { margin: 0.25, ..policy() }
}

fn turned(turn: f32) -> Seen {
    let mut seen = good();
    seen.face.quality.turn = Some(turn);
    seen
}

#[test]
fn a_face_that_is_nearly_as_like_another_is_nobodys() {
    for face in [good(), small()] {
        let between = face.like(1, 0.875).like(2, 0.75);
        given(nothing()).by(strict()).when(photo(BEACH).of([between]).counter(2)).then(["processed: ambiguous"]);
    }
}

#[test]
fn a_face_that_is_far_enough_ahead_is_somebodys() {
    let ahead = good().like(1, 0.9375).like(2, 0.6875);
    given(nothing()).by(strict()).when(photo(BEACH).of([ahead]).counter(2)).then(["processed: is person1"]);
}

#[test]
fn a_rival_counts_even_below_the_threshold() {
    let rival = good().like(1, 0.5).like(2, 0.375);
    given(nothing()).by(strict()).when(photo(BEACH).of([rival]).counter(2)).then(["processed: ambiguous"]);
    let both_below = good().like(1, 0.4375).like(2, 0.375);
    given(nothing())
        .by(strict())
        .when(photo(BEACH).of([both_below]).counter(2))
        .then(["allocated: person3 shown by 0 known by 0", "processed: founds person3 (template)"]);
}

#[test]
fn without_a_margin_the_nearest_is_always_the_person() {
    let close = good().like(1, 0.9501).like(2, 0.95);
    given(nothing()).when(photo(BEACH).of([close]).counter(2)).then(["processed: is person1"]);
}

#[test]
fn a_poor_face_between_two_strangers_of_its_photo_is_nobodys() {
    let crowd = photo(BEACH).of([good(), good(), small()]).alike(0, 2, 0.75).alike(1, 2, 0.6875);
    given(nothing()).by(strict()).when(crowd).then([
        "allocated: person1 shown by 0 known by 0, person2 shown by 1 known by 1",
        "processed: founds person1 (template), founds person2 (template), ambiguous",
    ]);
}

/// Five sixths of the way from 0.5 to 1.
#[test]
fn a_known_face_is_a_template_where_it_is_good_and_new() {
    let is = |face: Seen, expected: &'static str| {
        given(nothing()).when(photo(BEACH).of([face]).counter(1)).then([expected]);
    };
    is(good().like(1, 0.9166), "processed: is person1 (template)");
    is(good().like(1, 0.9167), "processed: is person1");
    is(small().like(1, 0.6), "processed: is person1");
    is(turned(0.95).like(1, 0.6), "processed: is person1");
    is(turned(0.9).like(1, 0.6), "processed: is person1 (template)");
}

#[test]
fn a_profile_founds_nobody() {
    given(nothing()).when(photo(BEACH).of([turned(0.95)])).then(["processed: too poor"]);
    given(nothing())
        .when(photo(BEACH).of([turned(0.9)]))
        .then(["allocated: person1 shown by 0 known by 0", "processed: founds person1 (template)"]);
}

#[test]
fn the_threshold_grows_with_the_number_of_persons() {
    let scale = Scale { unrelated: 0.5, spread: 0.05, skew: 1.0 };
    let grows = Threshold::Grows(scale);
    assert_eq!([0, 1, 5].map(|persons| grows.among(persons)), [grows.among(5); 3]);
    let tenfold = [10, 100, 1000, 10_000].map(|persons| grows.among(persons));
    for pair in tenfold.windows(2) {
        assert!((pair[1] - pair[0] - 0.5 * scale.spread).abs() < 1e-5, "{tenfold:?}");
    }
    assert!(grows.among(5) > scale.above(4.1), "above what chance gives");
    assert_eq!([0, 1_000_000].map(|persons| Threshold::Fixed(0.6).among(persons)), [0.6; 2]);
}

#[test]
fn among_many_a_face_must_be_nearer() {
    let policy = Policy { threshold: Threshold::Grows(Scale { unrelated: 0.0, spread: 0.1, skew: 1.0 }), ..policy() };
    let among = |persons| {
        let mut photo = photo(BEACH).of([good().like(1, 0.45)]).counter(1);
        photo.recognition.search.persons = persons;
        let events = given(nothing()).by(policy.clone()).when(photo).events();
        events.iter().map(tell).next_back().unwrap()
    };
    assert_eq!(among(5), "processed: is person1 (template)");
    assert_eq!(among(1000), "processed: founds person2 (template)");
}

/// A unit vector in a direction of its own, with a little of the others.
fn direction(place: usize, tilt: f32) -> Signature {
    let mut vector = [0.0; 64];
    vector[place] = 1.0;
    vector[63] += tilt;
    Signature::quantise(&vector).unwrap()
}

#[test]
fn a_person_is_known_by_sixteen_faces_at_most_and_by_diverse_ones() {
    let mut gallery = Gallery::default();
    for n in 0..60 {
        // One look again and again, and now and then another.
        gallery.learn(person(1), "m", &direction(0, n as f32 * 0.004));
        if n % 4 == 3 {
            gallery.learn(person(1), "m", &direction(1 + n / 4, 0.0));
        }
        assert!(gallery.len() <= Gallery::TEMPLATES, "{} templates", gallery.len());
    }
    assert_eq!(gallery.len(), Gallery::TEMPLATES);
    for look in 0..=15 {
        let near = gallery.nearest("m", &direction(look, 0.0), 1)[0].similarity;
        assert!(near > 0.95, "look {look} is forgotten: {near}");
    }
    gallery.learn(person(2), "m", &direction(40, 0.0));
    assert_eq!(gallery.len(), Gallery::TEMPLATES + 1, "everybody has as many");
}

#[test]
fn the_gallery_follows_merges_and_their_end() {
    let mut gallery = Gallery::default();
    for (number, place) in [(1, 0), (2, 1), (3, 2)] {
        gallery.learn(person(number), "m", &direction(place, 0.0));
    }
    let nearest = |gallery: &Gallery, place| -> Vec<u32> {
        gallery.nearest("m", &direction(place, 0.1), 9).iter().map(|candidate| candidate.person.number()).collect()
    };
    let (before, mut merges) = (nearest(&gallery, 2), Merges::default());
    assert_eq!(before, [3, 1, 2]);
    merges.evolve(&Event::PersonsMerged(merged(1, 3, Seq(1))));
    gallery.follow(&merges);
    assert_eq!(nearest(&gallery, 2), [1, 2], "the survivor, once");
    assert_eq!(
        gallery.persons("m").into_iter().map(|(id, known)| (id.number(), known.len())).collect::<Vec<_>>(),
        [(1, 2), (2, 1)]
    );
    gallery.follow(&Merges::default());
    assert_eq!(nearest(&gallery, 2), before);
}

fn unknown(n: u16, near: &[(u32, f32)]) -> UnknownFace {
    let candidate = |(number, similarity): &(u32, f32)| Candidate { person: person(*number), similarity: *similarity };
    UnknownFace { n, candidates: near.iter().map(candidate).collect(), witnessed: None }
}

fn reviewed(faces: Vec<UnknownFace>) -> Option<Event> {
    let photo = Review { image_id: BEACH.parse().unwrap(), follows: Seq(7), identity_seq: Seq(6), faces, persons: 5 };
    review(photo, &strict())
}

#[test]
fn a_review_says_who_is_known_by_now_and_leaves_the_others() {
    let event = reviewed(vec![
        unknown(0, &[(3, 0.4)]),
        unknown(2, &[(4, 0.75), (1, 0.25), (2, 0.2), (3, 0.1)]),
        unknown(3, &[(1, 0.8), (2, 0.75)]),
        unknown(5, &[]),
    ]);
    let event = event.expect("somebody is known");
    assert_eq!(tell(&event), "reviewed: face 2 is person4");
    let Event::FacesReviewed(said) = &event else { panic!("{event:?}") };
    assert_eq!((said.follows, said.identity_seq, said.faces[0].threshold), (Seq(7), Seq(6), 0.5));
    assert_eq!((said.faces[0].candidates.len(), said.faces[0].evidence), (3, None), "as many as an event keeps");
}

#[test]
fn a_review_of_faces_that_are_still_nobodys_says_nothing() {
    assert_eq!(reviewed(vec![unknown(0, &[(3, 0.4)]), unknown(1, &[(1, 0.8), (2, 0.75)])]), None);
    assert_eq!(reviewed(Vec::new()), None);
}

#[test]
fn all_faces_of_a_person_are_asked_where_the_nearest_is_not_enough() {
    let evidence = Evidence { similarity: 0.45, distinction: 5.0, lead: 2.0, beyond: 1.0, pairs: 3 };
    let witnessed = |face: UnknownFace| UnknownFace { witnessed: Some((person(3), evidence)), ..face };
    let event = reviewed(vec![witnessed(unknown(0, &[(3, 0.4)])), witnessed(unknown(1, &[(4, 0.9)]))]).unwrap();
    assert_eq!(tell(&event), "reviewed: face 0 is person3, face 1 is person4", "the nearest comes first");
    let Event::FacesReviewed(said) = &event else { panic!("{event:?}") };
    assert_eq!([said.faces[0].evidence, said.faces[1].evidence], [Some(evidence), None]);
}

#[test]
fn a_review_makes_two_persons_of_two_faces() {
    let event = reviewed(vec![unknown(0, &[(4, 0.9)]), unknown(1, &[(4, 0.8)]), unknown(2, &[(5, 0.8)])]).unwrap();
    assert_eq!(tell(&event), "reviewed: face 0 is person4, face 2 is person5");
}
