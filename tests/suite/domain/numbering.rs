//! The numbers that strangers get, and the event that says so.

use sparks_domain::{Event, FaceId, PersonsAllocated, Seq};

use crate::story::{BEACH, given, good, happened, nothing, photo, processed};

#[track_caller]
fn allocated(events: &[Event]) -> &PersonsAllocated {
    match events {
        [Event::PersonsAllocated(allocated), Event::PhotoProcessed(_)] => allocated,
        other => panic!("not an allocation before its photo: {other:?}"),
    }
}

#[test]
fn numbers_that_rows_of_others_have_are_skipped() {
    given(nothing()).when(photo(BEACH).of([good(), good(), good()]).counter(4).taken([5, 7, 9])).then([
        "allocated: person6 shown by 0 known by 0, person8 shown by 1 known by 1, person10 shown by 2 known by 2",
        "processed: founds person6 (template), founds person8 (template), founds person10 (template)",
    ]);
}

#[test]
fn taken_numbers_do_not_matter_where_nobody_is_new() {
    given(nothing())
        .when(photo(BEACH).of([good().like(3, 0.95)]).counter(4).taken([5]))
        .then(["processed: is person3"]);
}

#[test]
fn the_allocation_comes_before_the_photo_and_names_its_event() {
    let events = happened(photo(BEACH).of([good(), good()]));
    let kinds: Vec<_> = events.iter().map(Event::event_type).collect();
    assert_eq!(kinds, ["PersonsAllocated", "PhotoProcessed"]);
    assert_eq!(allocated(&events).photo_event, events[1].id());
    assert_eq!(allocated(&events).image_id, processed(&events).image_id);
    assert_ne!(events[0].id(), events[1].id());
}

#[test]
fn the_allocation_says_what_the_counter_was_and_the_photo_what_was_known() {
    let mut late = photo(BEACH).of([good()]).counter(41).taken([42]);
    late.recognition.identity.seq = Seq(17);
    let events = happened(late);
    assert_eq!(allocated(&events).counter, 41);
    assert_eq!(processed(&events).identity_seq, Seq(17));
}

#[test]
fn templates_are_faces_of_this_photo_marked_in_both_events() {
    let events = happened(photo(BEACH).of([good().like(1, 0.95), good(), good()]).alike(1, 2, 0.9).counter(1));
    let image = processed(&events).image_id.clone();
    let face = |n| FaceId { image: image.clone(), n };
    assert_eq!(allocated(&events).persons[0].templates, [face(1), face(2)]);
    let marked: Vec<_> = processed(&events).faces.iter().map(|face| face.template).collect();
    assert_eq!(marked, [false, true, true]);
}

#[test]
fn of_equally_good_faces_the_first_is_shown() {
    let equal = photo(BEACH).of([good().sized(50.0), good(), good()]).alike(0, 1, 0.9).alike(0, 2, 0.9);
    assert_eq!(allocated(&happened(equal)).persons[0].face.n, 1);
}

#[test]
fn who_is_known_changes_with_identity_events_only() {
    let events = happened(photo(BEACH).of([good()]));
    assert!(events[0].is_identity() && !events[1].is_identity());
    assert_eq!(events[0].image(), None);
    assert_eq!(events[1].image(), Some(&BEACH.parse().unwrap()));
}
