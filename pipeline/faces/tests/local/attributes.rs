use super::{load, look, pixels, portrait};
use sparks_engine::FaceEngine;
use sparks_faces::LocalOptions;

#[test]
fn attributes_are_guessed_when_they_are_on() {
    let engine = load(LocalOptions { mirror: false, attributes: true, ..LocalOptions::default() });
    let cases = [
        ("obama-1.jpg", "male", 51, Some("happy")),
        ("obama-2.jpg", "male", 48, None),
        ("biden.jpg", "male", 67, None),
        ("collins.png", "female", 35, Some("happy")),
    ];
    for (name, gender, age, emotion) in cases {
        let face = engine.look(&pixels(&portrait(name))).remove(0);
        let guesses = &face.attributes;
        assert_eq!(guesses["gender"]["value"], gender, "{name}: {guesses:?}");
        assert!(
            guesses["gender"]["confidence"].as_f64().is_some_and(|sure| (0.5..=1.0).contains(&sure)),
            "{guesses:?}"
        );
        // A guess of an age may be ten years off.
        let bound = |end: &str| guesses["age_range"][end].as_i64().expect("years");
        assert!(bound("low") - 10 <= age && age <= bound("high") + 10, "{name}: {guesses:?}");
        assert!(bound("low") < bound("high"), "{name}: {guesses:?}");
        assert!(emotion.is_none_or(|emotion| guesses["emotion"]["value"] == emotion), "{name}: {guesses:?}");
    }
}

#[test]
fn attributes_are_absent_when_they_are_off() {
    assert!(look(&portrait("collins.png")).remove(0).attributes.is_empty());
}
