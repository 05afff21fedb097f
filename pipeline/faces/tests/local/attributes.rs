use super::{analyze, load, pixels, portrait};
use sparks_engine::FaceEngine;
use sparks_faces::LocalOptions;

#[test]
fn attributes_are_estimated_when_enabled() {
    let engine = load(LocalOptions { mirror: false, attributes: true, ..LocalOptions::default() });
    let cases = [
        ("obama-1.jpg", "male", 51, Some("happy")),
        ("obama-2.jpg", "male", 48, None),
        ("biden.jpg", "male", 67, None),
        ("collins.png", "female", 35, Some("happy")),
    ];
    for (name, gender, age, emotion) in cases {
        let face = engine.analyze(&pixels(&portrait(name))).remove(0);
        let estimates = &face.attributes;
        assert_eq!(estimates["gender"]["value"], gender, "{name}: {estimates:?}");
        assert!(
            estimates["gender"]["confidence"].as_f64().is_some_and(|confidence| (0.5..=1.0).contains(&confidence)),
            "{estimates:?}"
        );
        // The estimated age may be ten years off.
        let bound = |end: &str| estimates["age_range"][end].as_i64().expect("years");
        assert!(bound("low") - 10 <= age && age <= bound("high") + 10, "{name}: {estimates:?}");
        assert!(bound("low") < bound("high"), "{name}: {estimates:?}");
        assert!(emotion.is_none_or(|emotion| estimates["emotion"]["value"] == emotion), "{name}: {estimates:?}");
    }
}

#[test]
fn attributes_are_absent_when_disabled() {
    assert!(analyze(&portrait("collins.png")).remove(0).attributes.is_empty());
}
