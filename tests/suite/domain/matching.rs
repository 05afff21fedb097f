//! The match rule, templates, the gallery, and reviews of unidentified faces.

use sparks_domain::{
    Candidate, Event, Evidence, Gallery, Merges, Policy, ReviewInput, Scale, Seq, Signature, Threshold,
    UnidentifiedFace, review,
};

use crate::given_when_then::{
    BEACH, FaceInput, describe, given, good_face, merged, no_events, person, photo, policy, small_face,
};

/// With a margin of 0.25.
fn strict() -> Policy {
    Policy { margin: 0.25, ..policy() }
}

fn turned(turn: f32) -> FaceInput {
    let mut input = good_face();
    input.face.quality.turn = Some(turn);
    input
}

#[test]
fn candidates_within_the_margin_are_ambiguous() {
    for face in [good_face(), small_face()] {
        let between = face.candidate(1, 0.875).candidate(2, 0.75);
        given(no_events())
            .with_policy(strict())
            .when(photo(BEACH).with_faces([between]).counter(2))
            .then(["processed: ambiguous"]);
    }
}

#[test]
fn candidate_ahead_by_the_margin_matches() {
    let ahead = good_face().candidate(1, 0.9375).candidate(2, 0.6875);
    given(no_events())
        .with_policy(strict())
        .when(photo(BEACH).with_faces([ahead]).counter(2))
        .then(["processed: matches person1"]);
}

#[test]
fn second_candidate_below_the_threshold_counts_for_the_margin() {
    let rival = good_face().candidate(1, 0.5).candidate(2, 0.375);
    given(no_events())
        .with_policy(strict())
        .when(photo(BEACH).with_faces([rival]).counter(2))
        .then(["processed: ambiguous"]);
    let both_below = good_face().candidate(1, 0.4375).candidate(2, 0.375);
    given(no_events())
        .with_policy(strict())
        .when(photo(BEACH).with_faces([both_below]).counter(2))
        .then(["allocated: person3 crop 0 templates 0", "processed: creates person3 (template)"]);
}

#[test]
fn nearest_candidate_matches_without_a_margin() {
    let close = good_face().candidate(1, 0.9501).candidate(2, 0.95);
    given(no_events()).when(photo(BEACH).with_faces([close]).counter(2)).then(["processed: matches person1"]);
}

#[test]
fn poor_face_between_two_new_persons_is_ambiguous() {
    let crowd =
        photo(BEACH).with_faces([good_face(), good_face(), small_face()]).similar(0, 2, 0.75).similar(1, 2, 0.6875);
    given(no_events()).with_policy(strict()).when(crowd).then([
        "allocated: person1 crop 0 templates 0, person2 crop 1 templates 1",
        "processed: creates person1 (template), creates person2 (template), ambiguous",
    ]);
}

/// The limit is five sixths of the way from the threshold 0.5 to 1.
#[test]
fn matched_face_becomes_a_template_if_good_and_not_duplicate() {
    let is = |face: FaceInput, expected: &'static str| {
        given(no_events()).when(photo(BEACH).with_faces([face]).counter(1)).then([expected]);
    };
    is(good_face().candidate(1, 0.9166), "processed: matches person1 (template)");
    is(good_face().candidate(1, 0.9167), "processed: matches person1");
    is(small_face().candidate(1, 0.6), "processed: matches person1");
    is(turned(0.95).candidate(1, 0.6), "processed: matches person1");
    is(turned(0.9).candidate(1, 0.6), "processed: matches person1 (template)");
}

#[test]
fn face_in_profile_creates_no_person() {
    given(no_events()).when(photo(BEACH).with_faces([turned(0.95)])).then(["processed: too poor"]);
    given(no_events())
        .when(photo(BEACH).with_faces([turned(0.9)]))
        .then(["allocated: person1 crop 0 templates 0", "processed: creates person1 (template)"]);
}

#[test]
fn adaptive_threshold_grows_with_the_number_of_persons() {
    let scale = Scale { median: 0.5, spread: 0.05, match_from: 4.1 };
    let adaptive = Threshold::Adaptive(scale);
    assert_eq!([0, 1, 5].map(|persons| adaptive.among(persons)), [adaptive.among(5); 3]);
    let tenfold = [10, 100, 1000, 10_000].map(|persons| adaptive.among(persons));
    for pair in tenfold.windows(2) {
        assert!((pair[1] - pair[0] - 0.5 * scale.spread).abs() < 1e-5, "{tenfold:?}");
    }
    assert!(adaptive.among(5) > scale.above(4.1), "above the level of chance");
    assert_eq!([0, 1_000_000].map(|persons| Threshold::Fixed(0.6).among(persons)), [0.6; 2]);
}

#[test]
fn higher_threshold_among_many_persons_prevents_a_match() {
    let policy =
        Policy { threshold: Threshold::Adaptive(Scale { median: 0.0, spread: 0.1, match_from: 4.1 }), ..policy() };
    let among = |persons| {
        let mut photo = photo(BEACH).with_faces([good_face().candidate(1, 0.45)]).counter(1);
        photo.identification.search.persons = persons;
        let events = given(no_events()).with_policy(policy.clone()).when(photo).events();
        events.iter().map(describe).next_back().unwrap()
    };
    assert_eq!(among(5), "processed: matches person1 (template)");
    assert_eq!(among(1000), "processed: creates person2 (template)");
}

/// The signature of an axis, tilted a little.
fn direction(axis: usize, tilt: f32) -> Signature {
    let mut vector = [0.0; 64];
    vector[axis] = 1.0;
    vector[63] += tilt;
    Signature::quantise(&vector).unwrap()
}

#[test]
fn person_has_at_most_sixteen_diverse_templates() {
    let mut gallery = Gallery::default();
    for n in 0..60 {
        // Mostly one direction, and sometimes another.
        gallery.enroll(person(1), "m", &direction(0, n as f32 * 0.004));
        if n % 4 == 3 {
            gallery.enroll(person(1), "m", &direction(1 + n / 4, 0.0));
        }
        assert!(gallery.len() <= Gallery::MAX_TEMPLATES, "{} templates", gallery.len());
    }
    assert_eq!(gallery.len(), Gallery::MAX_TEMPLATES);
    for axis in 0..=15 {
        let nearest = gallery.nearest("m", &direction(axis, 0.0), 1)[0].similarity;
        assert!(nearest > 0.95, "direction {axis} was replaced: {nearest}");
    }
    gallery.enroll(person(2), "m", &direction(40, 0.0));
    assert_eq!(gallery.len(), Gallery::MAX_TEMPLATES + 1, "the limit is per person");
}

#[test]
fn gallery_follows_merges_and_undo() {
    let mut gallery = Gallery::default();
    for (number, axis) in [(1, 0), (2, 1), (3, 2)] {
        gallery.enroll(person(number), "m", &direction(axis, 0.0));
    }
    let nearest = |gallery: &Gallery, axis| -> Vec<u32> {
        gallery.nearest("m", &direction(axis, 0.1), 9).iter().map(|candidate| candidate.person.number()).collect()
    };
    let (before, mut merges) = (nearest(&gallery, 2), Merges::default());
    assert_eq!(before, [3, 1, 2]);
    merges.evolve(&Event::PersonsMerged(merged(1, 3, Seq(1))));
    gallery.apply_merges(&merges);
    assert_eq!(nearest(&gallery, 2), [1, 2], "the survivor, once");
    assert_eq!(
        gallery.persons("m").into_iter().map(|(id, templates)| (id.number(), templates.len())).collect::<Vec<_>>(),
        [(1, 2), (2, 1)]
    );
    gallery.apply_merges(&Merges::default());
    assert_eq!(nearest(&gallery, 2), before);
}

fn unidentified(n: u16, near: &[(u32, f32)]) -> UnidentifiedFace {
    let candidate = |(number, similarity): &(u32, f32)| Candidate { person: person(*number), similarity: *similarity };
    UnidentifiedFace { n, candidates: near.iter().map(candidate).collect(), scale: None, by_all_templates: None }
}

fn reviewed(faces: Vec<UnidentifiedFace>) -> Option<Event> {
    let photo =
        ReviewInput { image_id: BEACH.parse().unwrap(), follows: Seq(7), identity_seq: Seq(6), faces, persons: 5 };
    review(photo, &strict())
}

#[test]
fn review_identifies_matching_faces_only() {
    let event = reviewed(vec![
        unidentified(0, &[(3, 0.4)]),
        unidentified(2, &[(4, 0.75), (1, 0.25), (2, 0.2), (3, 0.1)]),
        unidentified(3, &[(1, 0.8), (2, 0.75)]),
        unidentified(5, &[]),
    ]);
    let event = event.expect("a match");
    assert_eq!(describe(&event), "reviewed: face 2 matches person4");
    let Event::FacesReviewed(reviewed) = &event else { panic!("{event:?}") };
    assert_eq!((reviewed.follows, reviewed.identity_seq, reviewed.faces[0].threshold), (Seq(7), Seq(6), 0.5));
    assert_eq!(
        (reviewed.faces[0].candidates.len(), reviewed.faces[0].evidence),
        (3, None),
        "as many as an event records"
    );
}

#[test]
fn review_without_a_match_gives_no_event() {
    assert_eq!(reviewed(vec![unidentified(0, &[(3, 0.4)]), unidentified(1, &[(1, 0.8), (2, 0.75)])]), None);
    assert_eq!(reviewed(Vec::new()), None);
}

#[test]
fn review_uses_all_templates_below_the_threshold() {
    let evidence = Evidence { similarity: 0.45, distinction: 5.0, lead: 2.0, beyond: 1.0, pairs: 3 };
    let with_evidence =
        |face: UnidentifiedFace| UnidentifiedFace { by_all_templates: Some((person(3), evidence)), ..face };
    let event =
        reviewed(vec![with_evidence(unidentified(0, &[(3, 0.4)])), with_evidence(unidentified(1, &[(4, 0.9)]))])
            .unwrap();
    assert_eq!(
        describe(&event),
        "reviewed: face 0 matches person3, face 1 matches person4",
        "the match rule comes first"
    );
    let Event::FacesReviewed(reviewed) = &event else { panic!("{event:?}") };
    assert_eq!([reviewed.faces[0].evidence, reviewed.faces[1].evidence], [Some(evidence), None]);
}

#[test]
fn review_assigns_a_person_to_one_face_only() {
    let event =
        reviewed(vec![unidentified(0, &[(4, 0.9)]), unidentified(1, &[(4, 0.8)]), unidentified(2, &[(5, 0.8)])])
            .unwrap();
    assert_eq!(describe(&event), "reviewed: face 0 matches person4, face 2 matches person5");
}
