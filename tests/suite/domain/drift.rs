//! Drift between rows and the log, and foreign attributes, which stay unchanged.

use serde_json::{Value, json};
use sparks_domain::{Attributes, Difference, Key, Merges, Mutation, Timestamp, drift};

use crate::{
    given_when_then::{BEACH, ada, good_face, person, photo, project},
    memory_table::{Table, uploaded},
};

const NOON: &str = "2025-08-01T12:00:00.000Z";

/// Returns the rows of a photo with one new person: IMAGE, TAGGING, PERSON and the counter.
fn mutations() -> Vec<Mutation> {
    let when: Timestamp = NOON.parse().unwrap();
    let events = photo(BEACH).with_faces([good_face()]).into_events();
    events.iter().flat_map(|event| project(event, when, &Merges::default())).collect()
}

fn of(key: &Key) -> Mutation {
    mutations().into_iter().find(|mutation| mutation.key() == key).expect("a mutation")
}

fn image() -> Key {
    Key::image(&BEACH.parse().unwrap(), &ada())
}

fn tagging() -> Key {
    Key::tagging(&BEACH.parse().unwrap(), person(1))
}

/// Returns the projected row after a change by hand.
fn changed(key: &Key, change: impl FnOnce(&mut Attributes)) -> Attributes {
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    table.commit(&mutations());
    let mut row = table.rows.remove(key).expect("a row");
    change(&mut row);
    row
}

/// Checks the drift after a change of a row, as text.
#[track_caller]
fn check(key: &Key, change: impl FnOnce(&mut Attributes), expected: &[&str]) {
    let found = drift(&of(key), Some(&changed(key, change)));
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

fn put(name: &str, value: Value) -> impl FnOnce(&mut Attributes) {
    let name = name.to_owned();
    move |row| drop(row.insert(name, value))
}

#[test]
fn projected_rows_have_no_drift() {
    for mutation in mutations() {
        assert_eq!(drift(&mutation, Some(&changed(mutation.key(), |_| {}))), [], "{}", mutation.key());
    }
}

#[test]
fn absent_row_is_missing() {
    for key in [tagging(), Key::person(person(1)), Key::counter()] {
        assert_eq!(drift(&of(&key), None), [Difference::Missing(key.clone())]);
    }
    assert_eq!(Difference::Missing(tagging()).to_string(), format!("{BEACH} / PERSON#person1: the row is missing"));
}

#[test]
fn absent_image_row_is_no_drift() {
    assert_eq!(drift(&of(&image()), None), []);
}

#[test]
fn row_that_should_not_exist_is_stale() {
    let delete = Mutation::Delete { key: tagging() };
    assert_eq!(drift(&delete, Some(&Attributes::new())), [Difference::Stale(tagging())]);
    assert_eq!(drift(&delete, None), []);
    assert_eq!(
        Difference::Stale(Key::counter()).to_string(),
        "UNKNOWN_PERSONS / UNKNOWN_PERSONS: the row should not exist"
    );
}

#[test]
fn attribute_with_another_value_differs() {
    check(
        &image(),
        put("persons", json!(["person2"])),
        &[&format!(r#"{BEACH} / UPLOADED_BY#ada@example.org: persons is ["person2"], expected ["person1"]"#)],
    );
    check(
        &Key::person(person(1)),
        |row| drop(row.remove("s3Key")),
        &[r#"PERSON#person1 / person1: s3Key is missing, expected "persons/person1.jpg""#],
    );
    let found = drift(&of(&tagging()), Some(&changed(&tagging(), put("createdAt", json!("1754049600")))));
    let (expected, found_text) = (json!(1_754_049_600), Some(json!("1754049600")));
    let differs = Difference::Differs { key: tagging(), attribute: "createdAt".into(), expected, found: found_text };
    assert_eq!(found, [differs], "a number is not a string");
}

#[test]
fn foreign_attributes_never_differ() {
    check(&image(), |row| row.retain(|name, _| ["images", "persons", "lastModified"].contains(&name.as_str())), &[]);
    check(&image(), put("description", json!(17)), &[]);
    check(&Key::person(person(1)), put("birthday", json!("1815-12-10")), &[]);
}

#[test]
fn only_a_smaller_counter_is_drift() {
    let differs = |found: &str| format!("UNKNOWN_PERSONS / UNKNOWN_PERSONS: limit is {found}, expected 1");
    check(&Key::counter(), put("limit", json!(99)), &[]);
    check(&Key::counter(), put("limit", json!(0)), &[&differs("0")]);
    check(&Key::counter(), |row| drop(row.remove("limit")), &[&differs("missing")]);
    check(&Key::counter(), put("limit", json!("99")), &[&differs("\"99\"")]);
}

#[test]
fn only_an_earlier_last_modified_is_drift() {
    check(&image(), put("lastModified", json!("2025-08-01T12:00:00.001Z")), &[]);
    check(
        &image(),
        put("lastModified", json!("2025-08-01T11:59:59.999Z")),
        &[&format!(
            r#"{BEACH} / UPLOADED_BY#ada@example.org: lastModified is "2025-08-01T11:59:59.999Z", expected "{NOON}""#
        )],
    );
}

#[test]
fn applying_the_mutation_removes_the_drift() {
    for mutation in mutations() {
        let broken = changed(mutation.key(), |row| row.values_mut().for_each(|value| *value = Value::Null));
        assert!(!drift(&mutation, Some(&broken)).is_empty(), "{}", mutation.key());
        assert_eq!(drift(&mutation, mutation.apply(Some(broken)).as_ref()), [], "{}", mutation.key());
    }
}

#[test]
fn later_last_modified_of_the_platform_is_kept() {
    let edited = changed(&image(), put("lastModified", json!("2025-08-02T00:00:00.000Z")));
    let row = of(&image()).apply(Some(edited)).expect("a row");
    assert_eq!(row["lastModified"], json!("2025-08-02T00:00:00.000Z"));
    assert_eq!(
        of(&image()).apply(Some(uploaded(&BEACH.parse().unwrap()))).expect("a row")["lastModified"],
        json!(NOON)
    );
}

/// Checks that foreign attributes have the same text before and after each change.
#[track_caller]
fn check_foreign(text: &str) {
    let row: Attributes = serde_json::from_str(text).unwrap();
    for mutation in mutations() {
        let after = mutation.apply(Some(row.clone())).expect("a row");
        assert!(after.len() > row.len(), "nothing is set in {}", mutation.key());
        let theirs: Attributes = after.into_iter().filter(|(name, _)| row.contains_key(name)).collect();
        assert_eq!(serde_json::to_string(&theirs).unwrap(), text);
    }
}

#[test]
fn foreign_attributes_keep_every_byte() {
    check_foreign(r#"{"a":1.0,"b":100,"c":-0.0,"d":1.50,"e":1e+2,"f":0.1e-7}"#);
    check_foreign(r#"{"a":123456789012345678901234567890.5,"b":0.1000000000000000055511151231257827}"#);
    check_foreign(r#"{"a":{"y":[1.50,null,"ü",{}],"z":true},"b":"1.0","c":null,"d":""}"#);
}

#[test]
fn delete_leaves_no_row() {
    let delete = Mutation::Delete { key: tagging() };
    assert_eq!(delete.apply(Some(changed(&tagging(), |_| {}))), None);
    assert_eq!(delete.apply(None), None);
}
