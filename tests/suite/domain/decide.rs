//! Who is in a photo.

use sparks_domain::{Event, Verdict};

use crate::story::{BEACH, blurred, given, good, happened, nothing, person, photo, processed, small, uncertain};

#[test]
fn a_photo_of_nobody_is_processed() {
    given(nothing()).when(photo(BEACH)).then(["processed: nobody"]);
}

#[test]
fn an_unknown_face_founds_person1() {
    given(nothing())
        .when(photo(BEACH).of([good()]))
        .then(["allocated: person1 shown by 0 known by 0", "processed: founds person1 (template)"]);
}

#[test]
fn a_known_face_matches_and_nothing_is_allocated() {
    given(nothing()).when(photo(BEACH).of([good().like(7, 0.95)]).counter(9)).then(["processed: is person7"]);
}

#[test]
fn two_faces_of_one_stranger_are_one_person() {
    given(nothing()).when(photo(BEACH).of([good(), good()]).alike(0, 1, 0.8)).then([
        "allocated: person1 shown by 0 known by 0+1",
        "processed: founds person1 (template), is person1 (template)",
    ]);
}

#[test]
fn faces_alike_through_a_third_are_one_person() {
    let triptych = photo(BEACH).of([good(), good(), good()]);
    let expected = [
        "allocated: person1 shown by 0 known by 0+1+2",
        "processed: founds person1 (template), is person1 (template), is person1 (template)",
    ];
    for ends in [[(0, 1), (1, 2)], [(0, 2), (1, 2)], [(0, 1), (0, 2)]] {
        let alike = ends.into_iter().fold(triptych.clone(), |photo, (a, b)| photo.alike(a, b, 0.6));
        given(nothing()).when(alike).then(expected);
    }
}

#[test]
fn two_strangers_are_two_persons_numbered_by_face_order() {
    given(nothing()).when(photo(BEACH).of([good(), good().sized(500.0)]).alike(0, 1, 0.49)).then([
        "allocated: person1 shown by 0 known by 0, person2 shown by 1 known by 1",
        "processed: founds person1 (template), founds person2 (template)",
    ]);
}

#[test]
fn a_group_is_numbered_by_its_first_face_and_shown_by_its_best() {
    given(nothing()).when(photo(BEACH).of([good(), good(), good().sized(300.0)]).alike(0, 2, 0.7)).then([
        "allocated: person1 shown by 2 known by 0+2, person2 shown by 1 known by 1",
        "processed: is person1 (template), founds person2 (template), founds person1 (template)",
    ]);
}

#[test]
fn a_stranger_beside_a_known_person_gets_the_next_number() {
    given(nothing()).when(photo(BEACH).of([good().like(3, 0.8), good()]).counter(5)).then([
        "allocated: person6 shown by 1 known by 1",
        "processed: is person3 (template), founds person6 (template)",
    ]);
}

#[test]
fn a_poor_face_never_founds_a_person_and_is_kept() {
    for poor in [small(), blurred(), uncertain()] {
        given(nothing()).when(photo(BEACH).of([poor.clone()])).then(["processed: too poor"]);
        given(nothing()).when(photo(BEACH).of([poor.like(1, 0.49)]).counter(1)).then(["processed: too poor"]);
    }
}

#[test]
fn a_face_just_good_enough_founds() {
    let mut just = good().sized(40.0).certain(0.8);
    just.face.quality.sharpness = 0.3;
    given(nothing())
        .when(photo(BEACH).of([just]))
        .then(["allocated: person1 shown by 0 known by 0", "processed: founds person1 (template)"]);
}

#[test]
fn poor_faces_of_one_stranger_do_not_add_up_to_a_person() {
    given(nothing())
        .when(photo(BEACH).of([small(), blurred()]).alike(0, 1, 1.0))
        .then(["processed: too poor, too poor"]);
}

#[test]
fn a_poor_face_may_match_somebody_known() {
    for poor in [small(), blurred(), uncertain()] {
        given(nothing()).when(photo(BEACH).of([poor.like(2, 0.6)]).counter(2)).then(["processed: is person2"]);
    }
}

#[test]
fn a_poor_face_may_be_the_stranger_of_the_same_photo_and_is_no_template() {
    given(nothing())
        .when(photo(BEACH).of([small(), good()]).alike(0, 1, 0.6))
        .then(["allocated: person1 shown by 1 known by 1", "processed: is person1, founds person1 (template)"]);
}

#[test]
fn a_poor_face_is_the_stranger_it_is_most_like() {
    given(nothing()).when(photo(BEACH).of([good(), good(), small()]).alike(0, 2, 0.6).alike(1, 2, 0.7)).then([
        "allocated: person1 shown by 0 known by 0, person2 shown by 1 known by 1",
        "processed: founds person1 (template), founds person2 (template), is person2",
    ]);
}

#[test]
fn a_poor_face_does_not_tie_two_strangers_together() {
    given(nothing()).when(photo(BEACH).of([good(), small(), good()]).alike(0, 1, 0.6).alike(1, 2, 0.6)).then([
        "allocated: person1 shown by 0 known by 0, person2 shown by 2 known by 2",
        "processed: founds person1 (template), is person1, founds person2 (template)",
    ]);
}

/// The stranger has two templates; the poor face is like the one that does not show them.
#[test]
fn a_poor_face_like_any_good_face_of_a_stranger_is_the_stranger() {
    given(nothing()).when(photo(BEACH).of([good(), good(), small()]).alike(0, 1, 0.8).alike(1, 2, 0.8)).then([
        "allocated: person1 shown by 0 known by 0+1",
        "processed: founds person1 (template), is person1 (template), is person1",
    ]);
}

#[test]
fn the_nearest_candidate_wins_and_ties_go_to_the_lowest_number() {
    let nearest = good().like(2, 0.7).like(9, 0.8);
    given(nothing()).when(photo(BEACH).of([nearest]).counter(9)).then(["processed: is person9 (template)"]);
    for tied in [good().like(4, 0.8).like(12, 0.8), good().like(12, 0.8).like(4, 0.8)] {
        given(nothing()).when(photo(BEACH).of([tied]).counter(12)).then(["processed: is person4 (template)"]);
    }
}

#[test]
fn the_threshold_is_included() {
    let at = photo(BEACH).of([good().like(1, 0.5)]).counter(1);
    let below = photo(BEACH).of([good().like(1, 0.4999)]).counter(1);
    given(nothing()).when(at).then(["processed: is person1 (template)"]);
    given(nothing())
        .when(below)
        .then(["allocated: person2 shown by 0 known by 0", "processed: founds person2 (template)"]);
    given(nothing()).when(photo(BEACH).of([good(), good()]).alike(0, 1, 0.5)).then([
        "allocated: person1 shown by 0 known by 0+1",
        "processed: founds person1 (template), is person1 (template)",
    ]);
}

#[test]
fn an_event_keeps_the_nearest_candidates_and_the_threshold() {
    let crowd = good().like(5, 0.9).like(1, 0.4).like(2, 0.3).like(3, 0.2).like(4, 0.1);
    let events = happened(photo(BEACH).of([crowd, small().like(8, 0.2)]).counter(8));
    let kept = |n: usize| processed(&events).faces[n].candidates.clone();
    assert_eq!(kept(0).iter().map(|near| near.person.number()).collect::<Vec<_>>(), [5, 1, 2]);
    assert_eq!(kept(0)[0].similarity, 0.9);
    assert_eq!(kept(1).len(), 1, "a face that is nobody keeps its candidates too");
    assert!(processed(&events).faces.iter().all(|face| face.threshold == 0.5));
}

#[test]
fn the_persons_of_a_photo_are_listed_once_by_number() {
    let faces = [good().like(9, 0.9), small(), good().like(2, 0.9), small().like(9, 0.7)];
    let events = happened(photo(BEACH).of(faces).counter(9));
    assert_eq!(processed(&events).persons(), [person(2), person(9)]);
    assert_eq!(processed(&events).faces[1].verdict, Verdict::TooPoor);
}

#[test]
fn a_face_the_index_says_nothing_about_stays_in_the_event() {
    let mut unsearched = photo(BEACH).of([good(), small()]);
    unsearched.recognition.search.candidates.clear();
    given(nothing())
        .when(unsearched)
        .then(["allocated: person1 shown by 0 known by 0", "processed: founds person1 (template), too poor"]);
}

/// What is acted on at once and what is read back later must be the same thing.
#[test]
fn a_decided_event_reads_back_as_itself() {
    let mut seen = good();
    seen.face.bounds = [1.0 / 3.0, 0.1, 0.2, 0.7].into();
    seen.face.landmarks = vec![[2.0 / 3.0, 1.0 / 7.0].into()];
    seen.face.confidence = 2.0 / 3.0 + 0.2;
    for event in happened(photo(BEACH).of([seen])) {
        assert_eq!(Event::parse(event.event_type(), &event.to_data()), Ok(event));
    }
}

/// JSON has no word for NaN and infinity: an event that holds one could never be read again.
#[test]
fn measures_that_are_no_numbers_do_not_make_the_log_unreadable() {
    for broken in [f32::NAN, f32::INFINITY] {
        for seen in [good().certain(broken), good().sized(broken)] {
            for event in happened(photo(BEACH).of([seen])) {
                let read = Event::parse(event.event_type(), &event.to_data());
                assert!(read.is_ok(), "{broken}: {}", read.unwrap_err());
            }
        }
    }
}
