//! What is decided once is not decided again, and what is older never wins.

use sparks_domain::{
    Event, Refusal,
    RejectCode::{Damaged, Empty, TooManyPixels},
};

use crate::story::{BEACH, PARTY, given, good, happened, photo, state_of};

#[test]
fn the_same_version_again_is_refused() {
    let once = photo(BEACH).of([good()]);
    given(once.clone().happened()).when(once).then_refused("already committed by event 2");
}

#[test]
fn a_refusal_carries_what_the_log_knows() {
    let history = photo(BEACH).of([good()]).happened();
    let state = state_of(&BEACH.parse().unwrap(), &history).expect("a state");
    let refusal = given(history).when(photo(BEACH)).refusal();
    assert_eq!(refusal, Refusal::AlreadyCommitted(state.into()));
}

#[test]
fn another_photo_of_the_same_version_is_no_repeat() {
    given(photo(BEACH).happened()).when(photo(PARTY)).then(["processed: nobody"]);
}

#[test]
fn a_newer_version_is_processed() {
    given(photo(BEACH).version("v1").happened()).when(photo(BEACH).version("v2")).then(["processed: nobody"]);
    given(photo(BEACH).version("v1").sequencer("0A").happened())
        .when(photo(BEACH).version("v2").sequencer("0B"))
        .then(["processed: nobody"]);
}

#[test]
fn an_older_version_is_outdated() {
    given(photo(BEACH).version("v2").sequencer("0B").happened())
        .when(photo(BEACH).version("v1").sequencer("0A"))
        .then_refused("a newer version was committed by event 1");
    given(photo(BEACH).version("v2").sequencer("0B").happened())
        .when(photo(BEACH).version("v1").sequencer("0A").rejected(Damaged))
        .then_refused("a newer version was committed by event 1");
}

#[test]
fn sequencers_compare_as_hexadecimal_padded_on_the_right() {
    let check = |committed: &str, now: &str, outdated: bool| {
        let history = photo(BEACH).version("v1").sequencer(committed).happened();
        let told = given(history).when(photo(BEACH).version("v2").sequencer(now));
        match outdated {
            true => told.then_refused("a newer version was committed by event 1"),
            false => told.then(["processed: nobody"]),
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
fn without_sequencers_nothing_is_older() {
    given(photo(BEACH).version("v1").sequencer("0B").happened())
        .when(photo(BEACH).version("v2"))
        .then(["processed: nobody"]);
    given(photo(BEACH).version("v1").happened())
        .when(photo(BEACH).version("v2").sequencer("0A"))
        .then(["processed: nobody"]);
}

#[test]
fn a_rejected_photo_may_be_processed_later() {
    given(happened(photo(BEACH).rejected(TooManyPixels))).when(photo(BEACH)).then(["processed: nobody"]);
}

#[test]
fn a_processed_photo_is_not_rejected_later() {
    given(photo(BEACH).happened()).when(photo(BEACH).rejected(Damaged)).then_refused("already committed by event 1");
}

#[test]
fn a_rejection_is_repeated_for_another_reason_only() {
    let history = happened(photo(BEACH).rejected(TooManyPixels));
    given(history.clone()).when(photo(BEACH).rejected(TooManyPixels)).then_refused("already committed by event 1");
    given(history.clone()).when(photo(BEACH).rejected(Damaged)).then(["rejected: Damaged"]);
    given(history).when(photo(BEACH).version("v2").rejected(TooManyPixels)).then(["rejected: TooManyPixels"]);
}

#[test]
fn a_rejection_says_why_and_of_what() {
    let events = happened(photo(BEACH).sequencer("0A").rejected(Empty));
    let [Event::PhotoRejected(rejected)] = events.as_slice() else { panic!("not one rejection: {events:?}") };
    assert_eq!(rejected.reason.message, "it is Empty");
    assert_eq!(rejected.source, photo(BEACH).sequencer("0A").source);
    assert_eq!(rejected.image_id.as_str(), BEACH);
}

/// The log takes an ID once. An ID that comes again would keep the photo out for ever.
#[track_caller]
fn check_ids_are_new(history: &[Event], now: &[Event]) {
    for event in now {
        assert!(history.iter().all(|before| before.id() != event.id()), "{} again", event.event_type());
    }
}

#[test]
fn a_photo_that_returns_to_earlier_content_is_a_new_event() {
    let history = [photo(BEACH).version("v1").happened(), photo(BEACH).version("v2").happened()].concat();
    let back = given(history.clone()).when(photo(BEACH).version("v1")).events();
    check_ids_are_new(&history, &back);
}

#[test]
fn a_rejection_that_returns_to_an_earlier_reason_is_a_new_event() {
    let history = [happened(photo(BEACH).rejected(Damaged)), happened(photo(BEACH).rejected(TooManyPixels))].concat();
    let again = given(history.clone()).when(photo(BEACH).rejected(Damaged)).events();
    check_ids_are_new(&history, &again);
}
