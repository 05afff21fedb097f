//! Reader levels of events.

use sparks_domain::{Event, Level, UnreadableEvent};

use crate::golden_events::every_event;

#[test]
fn everything_released_without_a_level_has_the_first() {
    for event in every_event(true) {
        let expected = if matches!(event, Event::LevelRaised(_)) { Level(2) } else { Level::FIRST };
        assert_eq!(event.level(), expected, "{}", event.event_type());
        assert!(event.level() <= Level::MAX, "{}: this release could not read it", event.event_type());
    }
}

#[test]
fn a_raise_to_a_level_of_a_later_release_is_unreadable() {
    let raise = |level: Level| format!(r#"{{"v":1,"level":{level},"identity_seq":7}}"#);
    assert!(Event::parse("LevelRaised", &raise(Level::MAX)).is_ok());
    let next = Level(Level::MAX.0 + 1);
    let unreadable = Event::parse("LevelRaised", &raise(next)).unwrap_err();
    assert_eq!(unreadable, UnreadableEvent::HigherLevel(next));
    let message = unreadable.to_string();
    assert!(message.contains("level 3") && message.contains("reads level 2: upgrade"), "{message}");
}
