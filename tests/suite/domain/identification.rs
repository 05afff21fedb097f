//! Identification of the faces of one photo.

use sparks_domain::{Event, Verdict};

use crate::given_when_then::{
    BEACH, blurred_face, events_of, given, good_face, no_events, person, photo, processed, small_face, uncertain_face,
};

#[test]
fn photo_without_faces_is_processed() {
    given(no_events()).when(photo(BEACH)).then(["processed: no persons"]);
}

#[test]
fn first_unmatched_face_creates_person1() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face()]))
        .then(["allocated: person1 crop 0 templates 0", "processed: creates person1 (template)"]);
}

#[test]
fn matching_face_allocates_no_person() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face().candidate(7, 0.95)]).counter(9))
        .then(["processed: matches person7"]);
}

#[test]
fn two_similar_unmatched_faces_are_one_new_person() {
    given(no_events()).when(photo(BEACH).with_faces([good_face(), good_face()]).similar(0, 1, 0.8)).then([
        "allocated: person1 crop 0 templates 0+1",
        "processed: creates person1 (template), matches person1 (template)",
    ]);
}

#[test]
fn faces_similar_through_a_third_are_one_new_person() {
    let triptych = photo(BEACH).with_faces([good_face(), good_face(), good_face()]);
    let expected = [
        "allocated: person1 crop 0 templates 0+1+2",
        "processed: creates person1 (template), matches person1 (template), matches person1 (template)",
    ];
    for ends in [[(0, 1), (1, 2)], [(0, 2), (1, 2)], [(0, 1), (0, 2)]] {
        let linked = ends.into_iter().fold(triptych.clone(), |photo, (a, b)| photo.similar(a, b, 0.6));
        given(no_events()).when(linked).then(expected);
    }
}

#[test]
fn new_persons_are_numbered_in_face_order() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), good_face().with_size(500.0)]).similar(0, 1, 0.49))
        .then([
            "allocated: person1 crop 0 templates 0, person2 crop 1 templates 1",
            "processed: creates person1 (template), creates person2 (template)",
        ]);
}

#[test]
fn new_person_is_numbered_by_first_face_and_cropped_by_best() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), good_face(), good_face().with_size(300.0)]).similar(0, 2, 0.7))
        .then([
            "allocated: person1 crop 2 templates 0+2, person2 crop 1 templates 1",
            "processed: matches person1 (template), creates person2 (template), creates person1 (template)",
        ]);
}

#[test]
fn new_person_beside_a_known_one_gets_the_next_number() {
    given(no_events()).when(photo(BEACH).with_faces([good_face().candidate(3, 0.8), good_face()]).counter(5)).then([
        "allocated: person6 crop 1 templates 1",
        "processed: matches person3 (template), creates person6 (template)",
    ]);
}

#[test]
fn poor_face_creates_no_person_and_is_recorded() {
    for poor in [small_face(), blurred_face(), uncertain_face()] {
        given(no_events()).when(photo(BEACH).with_faces([poor.clone()])).then(["processed: too poor"]);
        given(no_events())
            .when(photo(BEACH).with_faces([poor.candidate(1, 0.49)]).counter(1))
            .then(["processed: too poor"]);
    }
}

#[test]
fn face_at_the_quality_bar_creates_a_person() {
    let mut just = good_face().with_size(40.0).with_confidence(0.8);
    just.face.quality.sharpness = 0.3;
    given(no_events())
        .when(photo(BEACH).with_faces([just]))
        .then(["allocated: person1 crop 0 templates 0", "processed: creates person1 (template)"]);
}

#[test]
fn several_poor_faces_create_no_person() {
    given(no_events())
        .when(photo(BEACH).with_faces([small_face(), blurred_face()]).similar(0, 1, 1.0))
        .then(["processed: too poor, too poor"]);
}

#[test]
fn poor_face_may_match_a_known_person() {
    for poor in [small_face(), blurred_face(), uncertain_face()] {
        given(no_events())
            .when(photo(BEACH).with_faces([poor.candidate(2, 0.6)]).counter(2))
            .then(["processed: matches person2"]);
    }
}

#[test]
fn poor_face_may_match_a_new_person_of_the_same_photo() {
    given(no_events())
        .when(photo(BEACH).with_faces([small_face(), good_face()]).similar(0, 1, 0.6))
        .then(["allocated: person1 crop 1 templates 1", "processed: matches person1, creates person1 (template)"]);
}

#[test]
fn poor_face_matches_the_most_similar_new_person() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), good_face(), small_face()]).similar(0, 2, 0.6).similar(1, 2, 0.7))
        .then([
            "allocated: person1 crop 0 templates 0, person2 crop 1 templates 1",
            "processed: creates person1 (template), creates person2 (template), matches person2",
        ]);
}

#[test]
fn poor_face_does_not_link_two_new_persons() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), small_face(), good_face()]).similar(0, 1, 0.6).similar(1, 2, 0.6))
        .then([
            "allocated: person1 crop 0 templates 0, person2 crop 2 templates 2",
            "processed: creates person1 (template), matches person1, creates person2 (template)",
        ]);
}

/// The new person has two templates; the poor face resembles the one that is not the crop.
#[test]
fn poor_face_may_match_any_good_face_of_a_new_person() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), good_face(), small_face()]).similar(0, 1, 0.8).similar(1, 2, 0.8))
        .then([
            "allocated: person1 crop 0 templates 0+1",
            "processed: creates person1 (template), matches person1 (template), matches person1",
        ]);
}

#[test]
fn nearest_candidate_wins_and_ties_go_to_the_lowest_number() {
    let nearest = good_face().candidate(2, 0.7).candidate(9, 0.8);
    given(no_events())
        .when(photo(BEACH).with_faces([nearest]).counter(9))
        .then(["processed: matches person9 (template)"]);
    for tied in [good_face().candidate(4, 0.8).candidate(12, 0.8), good_face().candidate(12, 0.8).candidate(4, 0.8)] {
        given(no_events())
            .when(photo(BEACH).with_faces([tied]).counter(12))
            .then(["processed: matches person4 (template)"]);
    }
}

#[test]
fn similarity_at_the_threshold_matches() {
    let at = photo(BEACH).with_faces([good_face().candidate(1, 0.5)]).counter(1);
    let below = photo(BEACH).with_faces([good_face().candidate(1, 0.4999)]).counter(1);
    given(no_events()).when(at).then(["processed: matches person1 (template)"]);
    given(no_events())
        .when(below)
        .then(["allocated: person2 crop 0 templates 0", "processed: creates person2 (template)"]);
    given(no_events()).when(photo(BEACH).with_faces([good_face(), good_face()]).similar(0, 1, 0.5)).then([
        "allocated: person1 crop 0 templates 0+1",
        "processed: creates person1 (template), matches person1 (template)",
    ]);
}

#[test]
fn event_records_the_nearest_candidates_and_the_threshold() {
    let crowd = good_face().candidate(5, 0.9).candidate(1, 0.4).candidate(2, 0.3).candidate(3, 0.2).candidate(4, 0.1);
    let events = events_of(photo(BEACH).with_faces([crowd, small_face().candidate(8, 0.2)]).counter(8));
    let recorded = |n: usize| processed(&events).faces[n].candidates.clone();
    assert_eq!(recorded(0).iter().map(|near| near.person.number()).collect::<Vec<_>>(), [5, 1, 2]);
    assert_eq!(recorded(0)[0].similarity, 0.9);
    assert_eq!(recorded(1).len(), 1, "also for an unidentified face");
    assert!(processed(&events).faces.iter().all(|face| face.threshold == 0.5));
}

#[test]
fn persons_of_a_photo_are_listed_once_by_number() {
    let faces =
        [good_face().candidate(9, 0.9), small_face(), good_face().candidate(2, 0.9), small_face().candidate(9, 0.7)];
    let events = events_of(photo(BEACH).with_faces(faces).counter(9));
    assert_eq!(processed(&events).persons(), [person(2), person(9)]);
    assert_eq!(processed(&events).faces[1].verdict, Verdict::TooPoor);
}

#[test]
fn face_without_search_result_is_recorded() {
    let mut unsearched = photo(BEACH).with_faces([good_face(), small_face()]);
    unsearched.identification.search.candidates.clear();
    given(no_events())
        .when(unsearched)
        .then(["allocated: person1 crop 0 templates 0", "processed: creates person1 (template), too poor"]);
}

/// Decisions are based on exactly the recorded values.
#[test]
fn decided_event_reads_back_unchanged() {
    let mut input = good_face();
    input.face.bounds = [1.0 / 3.0, 0.1, 0.2, 0.7].into();
    input.face.landmarks = vec![[2.0 / 3.0, 1.0 / 7.0].into()];
    input.face.confidence = 2.0 / 3.0 + 0.2;
    for event in events_of(photo(BEACH).with_faces([input])) {
        assert_eq!(Event::parse(event.event_type(), &event.to_data()), Ok(event));
    }
}

/// JSON cannot represent NaN and infinity: an event with one could not be read.
#[test]
fn non_finite_measurements_leave_the_log_readable() {
    for broken in [f32::NAN, f32::INFINITY] {
        for input in [good_face().with_confidence(broken), good_face().with_size(broken)] {
            for event in events_of(photo(BEACH).with_faces([input])) {
                let read = Event::parse(event.event_type(), &event.to_data());
                assert!(read.is_ok(), "{broken}: {}", read.unwrap_err());
            }
        }
    }
}
