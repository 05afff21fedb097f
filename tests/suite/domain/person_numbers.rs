//! Numbers of new persons, and their allocation.

use sparks_domain::{Event, FaceId, PersonsAllocated, Seq};

use crate::given_when_then::{BEACH, events_of, given, good_face, no_events, photo, processed};

#[track_caller]
fn allocated(events: &[Event]) -> &PersonsAllocated {
    match events {
        [Event::PersonsAllocated(allocated), Event::PhotoProcessed(_)] => allocated,
        other => panic!("not an allocation before its photo: {other:?}"),
    }
}

#[test]
fn numbers_used_by_foreign_rows_are_skipped() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face(), good_face(), good_face()]).counter(4).taken_numbers([5, 7, 9]))
        .then([
            "allocated: person6 crop 0 templates 0, person8 crop 1 templates 1, person10 crop 2 templates 2",
            "processed: creates person6 (template), creates person8 (template), creates person10 (template)",
        ]);
}

#[test]
fn taken_numbers_do_not_matter_without_a_new_person() {
    given(no_events())
        .when(photo(BEACH).with_faces([good_face().candidate(3, 0.95)]).counter(4).taken_numbers([5]))
        .then(["processed: matches person3"]);
}

#[test]
fn allocation_precedes_the_photo_and_refers_to_its_event() {
    let events = events_of(photo(BEACH).with_faces([good_face(), good_face()]));
    let kinds: Vec<_> = events.iter().map(Event::event_type).collect();
    assert_eq!(kinds, ["PersonsAllocated", "PhotoProcessed"]);
    assert_eq!(allocated(&events).photo_event, events[1].id());
    assert_eq!(allocated(&events).image_id, processed(&events).image_id);
    assert_ne!(events[0].id(), events[1].id());
}

#[test]
fn allocation_records_the_counter_and_photo_the_identity_head() {
    let mut late = photo(BEACH).with_faces([good_face()]).counter(41).taken_numbers([42]);
    late.identification.identity.seq = Seq(17);
    let events = events_of(late);
    assert_eq!(allocated(&events).counter, 41);
    assert_eq!(processed(&events).identity_seq, Seq(17));
}

#[test]
fn templates_of_new_persons_are_marked_in_both_events() {
    let events = events_of(
        photo(BEACH)
            .with_faces([good_face().candidate(1, 0.95), good_face(), good_face()])
            .similar(1, 2, 0.9)
            .counter(1),
    );
    let image = processed(&events).image_id.clone();
    let face = |n| FaceId { image: image.clone(), n };
    assert_eq!(allocated(&events).persons[0].templates, [face(1), face(2)]);
    let marked: Vec<_> = processed(&events).faces.iter().map(|face| face.template).collect();
    assert_eq!(marked, [false, true, true]);
}

#[test]
fn first_of_equally_good_faces_is_the_crop() {
    let equal = photo(BEACH)
        .with_faces([good_face().with_size(50.0), good_face(), good_face()])
        .similar(0, 1, 0.9)
        .similar(0, 2, 0.9);
    assert_eq!(allocated(&events_of(equal)).persons[0].face.n, 1);
}

#[test]
fn only_allocation_is_in_the_identity_lane() {
    let events = events_of(photo(BEACH).with_faces([good_face()]));
    assert!(events[0].is_identity() && !events[1].is_identity());
    assert_eq!(events[0].image(), None);
    assert_eq!(events[1].image(), Some(&BEACH.parse().unwrap()));
}
