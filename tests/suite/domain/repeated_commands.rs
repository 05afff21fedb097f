//! Repeated and outdated commands are refused.

use sparks_domain::{
    Event, Refusal,
    RejectCode::{Damaged, Empty, TooManyPixels},
};

use crate::given_when_then::{BEACH, PARTY, events_of, given, good_face, photo, state_of};

#[test]
fn same_version_again_is_refused() {
    let once = photo(BEACH).with_faces([good_face()]);
    given(once.clone().into_events()).when(once).then_refused("already committed by event 2");
}

#[test]
fn refusal_contains_the_photo_state() {
    let history = photo(BEACH).with_faces([good_face()]).into_events();
    let state = state_of(&BEACH.parse().unwrap(), &history).expect("a state");
    let refusal = given(history).when(photo(BEACH)).refusal();
    assert_eq!(refusal, Refusal::AlreadyCommitted(state.into()));
}

#[test]
fn same_version_of_another_photo_is_processed() {
    given(photo(BEACH).into_events()).when(photo(PARTY)).then(["processed: no persons"]);
}

#[test]
fn newer_version_is_processed() {
    given(photo(BEACH).version("v1").into_events()).when(photo(BEACH).version("v2")).then(["processed: no persons"]);
    given(photo(BEACH).version("v1").sequencer("0A").into_events())
        .when(photo(BEACH).version("v2").sequencer("0B"))
        .then(["processed: no persons"]);
}

#[test]
fn older_version_is_refused_as_outdated() {
    given(photo(BEACH).version("v2").sequencer("0B").into_events())
        .when(photo(BEACH).version("v1").sequencer("0A"))
        .then_refused("a newer version was committed by event 1");
    given(photo(BEACH).version("v2").sequencer("0B").into_events())
        .when(photo(BEACH).version("v1").sequencer("0A").rejected(Damaged))
        .then_refused("a newer version was committed by event 1");
}

#[test]
fn sequencers_compare_as_right_padded_hexadecimal() {
    let check = |committed: &str, now: &str, outdated: bool| {
        let history = photo(BEACH).version("v1").sequencer(committed).into_events();
        let decision = given(history).when(photo(BEACH).version("v2").sequencer(now));
        match outdated {
            true => decision.then_refused("a newer version was committed by event 1"),
            false => decision.then(["processed: no persons"]),
        }
    };
    check("0055AED6DCD90281E5", "0055AED6DCD90281E4", true);
    check("0055AED6DCD90281E5", "0055AED6DCD90281E6", false);
    check("00A", "009FFF", true); // longer, and still older
    check("009FFF", "00A", false);
    check("00A", "00A000", false); // the same number
    check("00A001", "00A", true);
    check("00b", "00A", true); // letters of either case
    check("00a", "00B", false);
}

#[test]
fn version_without_sequencer_is_never_outdated() {
    given(photo(BEACH).version("v1").sequencer("0B").into_events())
        .when(photo(BEACH).version("v2"))
        .then(["processed: no persons"]);
    given(photo(BEACH).version("v1").into_events())
        .when(photo(BEACH).version("v2").sequencer("0A"))
        .then(["processed: no persons"]);
}

#[test]
fn rejected_photo_can_be_processed_later() {
    given(events_of(photo(BEACH).rejected(TooManyPixels))).when(photo(BEACH)).then(["processed: no persons"]);
}

#[test]
fn processed_photo_is_not_rejected_later() {
    given(photo(BEACH).into_events()).when(photo(BEACH).rejected(Damaged)).then_refused("already committed by event 1");
}

#[test]
fn rejection_is_recorded_again_for_another_reason_only() {
    let history = events_of(photo(BEACH).rejected(TooManyPixels));
    given(history.clone()).when(photo(BEACH).rejected(TooManyPixels)).then_refused("already committed by event 1");
    given(history.clone()).when(photo(BEACH).rejected(Damaged)).then(["rejected: Damaged"]);
    given(history).when(photo(BEACH).version("v2").rejected(TooManyPixels)).then(["rejected: TooManyPixels"]);
}

#[test]
fn rejection_records_reason_and_source() {
    let events = events_of(photo(BEACH).sequencer("0A").rejected(Empty));
    let [Event::PhotoRejected(rejected)] = events.as_slice() else { panic!("not one rejection: {events:?}") };
    assert_eq!(rejected.reason.message, "it is Empty");
    assert_eq!(rejected.source, photo(BEACH).sequencer("0A").source);
    assert_eq!(rejected.image_id.as_str(), BEACH);
}

/// The log records an ID once: a reused ID would keep the photo from being recorded.
#[track_caller]
fn check_ids_are_new(history: &[Event], now: &[Event]) {
    for event in now {
        assert!(history.iter().all(|before| before.id() != event.id()), "{} again", event.event_type());
    }
}

#[test]
fn return_to_earlier_content_is_a_new_event() {
    let history = [photo(BEACH).version("v1").into_events(), photo(BEACH).version("v2").into_events()].concat();
    let back = given(history.clone()).when(photo(BEACH).version("v1")).events();
    check_ids_are_new(&history, &back);
}

#[test]
fn return_to_an_earlier_reject_reason_is_a_new_event() {
    let history = [events_of(photo(BEACH).rejected(Damaged)), events_of(photo(BEACH).rejected(TooManyPixels))].concat();
    let again = given(history.clone()).when(photo(BEACH).rejected(Damaged)).events();
    check_ids_are_new(&history, &again);
}
