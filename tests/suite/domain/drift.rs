//! Rows that are not as the log says, and rows of others that stay as they are.

use serde_json::{Value, json};
use sparks_domain::{Attributes, Difference, Key, Merges, Mutation, Projection, Timestamp, drift};

use crate::{
    story::{BEACH, ada, good, person, photo},
    table::{Table, uploaded},
};

const NOON: &str = "2025-08-01T12:00:00.000Z";

/// Everything the photo of one stranger makes: the IMAGE, a TAGGING, a PERSON and the counter.
fn mutations() -> Vec<Mutation> {
    let when: Timestamp = NOON.parse().unwrap();
    let events = photo(BEACH).of([good()]).happened();
    events.iter().flat_map(|event| Projection::default().project(None, event, when, &Merges::default())).collect()
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

/// The row as it should be, then changed by hand.
fn changed(key: &Key, change: impl FnOnce(&mut Attributes)) -> Attributes {
    let mut table = Table::of_platform([&BEACH.parse().unwrap()]);
    table.commit(&mutations());
    let mut row = table.rows.remove(key).expect("a row");
    change(&mut row);
    row
}

/// What drifts after this change of a row, as people read it.
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
fn rows_as_the_log_says_do_not_drift() {
    for mutation in mutations() {
        assert_eq!(drift(&mutation, Some(&changed(mutation.key(), |_| {}))), [], "{}", mutation.key());
    }
}

#[test]
fn a_row_of_ours_that_is_not_there_is_missing() {
    for key in [tagging(), Key::person(person(1)), Key::counter()] {
        assert_eq!(drift(&of(&key), None), [Difference::Missing(key.clone())]);
    }
    assert_eq!(Difference::Missing(tagging()).to_string(), format!("{BEACH} / PERSON#person1: the row is missing"));
}

#[test]
fn a_row_only_the_platform_can_make_is_not_ours_to_miss() {
    assert_eq!(drift(&of(&image()), None), []);
}

#[test]
fn a_row_that_should_be_gone_is_stale() {
    let delete = Mutation::Delete { key: tagging() };
    assert_eq!(drift(&delete, Some(&Attributes::new())), [Difference::Stale(tagging())]);
    assert_eq!(drift(&delete, None), []);
    assert_eq!(
        Difference::Stale(Key::counter()).to_string(),
        "UNKNOWN_PERSONS / UNKNOWN_PERSONS: the row should be gone"
    );
}

#[test]
fn an_attribute_with_another_value_differs() {
    check(
        &image(),
        put("persons", json!(["person2"])),
        &[&format!(r#"{BEACH} / UPLOADED_BY#ada@example.org: persons is ["person2"], the log says ["person1"]"#)],
    );
    check(
        &Key::person(person(1)),
        |row| drop(row.remove("s3Key")),
        &[r#"PERSON#person1 / person1: s3Key is missing, the log says "persons/person1.jpg""#],
    );
    let found = drift(&of(&tagging()), Some(&changed(&tagging(), put("createdAt", json!("1754049600")))));
    let (expected, found_text) = (json!(1_754_049_600), Some(json!("1754049600")));
    let differs = Difference::Differs { key: tagging(), attribute: "createdAt".into(), expected, found: found_text };
    assert_eq!(found, [differs], "a number is not a text");
}

#[test]
fn attributes_of_others_never_differ() {
    check(&image(), |row| row.retain(|name, _| ["images", "persons", "lastModified"].contains(&name.as_str())), &[]);
    check(&image(), put("description", json!(17)), &[]);
    check(&Key::person(person(1)), put("birthday", json!("1815-12-10")), &[]);
}

#[test]
fn a_larger_counter_is_no_drift_and_a_smaller_one_is() {
    let says = |found: &str| format!("UNKNOWN_PERSONS / UNKNOWN_PERSONS: limit is {found}, the log says 1");
    check(&Key::counter(), put("limit", json!(99)), &[]);
    check(&Key::counter(), put("limit", json!(0)), &[&says("0")]);
    check(&Key::counter(), |row| drop(row.remove("limit")), &[&says("missing")]);
    check(&Key::counter(), put("limit", json!("99")), &[&says("\"99\"")]);
}

#[test]
fn a_later_last_modified_is_no_drift_and_an_earlier_one_is() {
    check(&image(), put("lastModified", json!("2025-08-01T12:00:00.001Z")), &[]);
    check(
        &image(),
        put("lastModified", json!("2025-08-01T11:59:59.999Z")),
        &[&format!(
            r#"{BEACH} / UPLOADED_BY#ada@example.org: lastModified is "2025-08-01T11:59:59.999Z", the log says "{NOON}""#
        )],
    );
}

#[test]
fn what_drifted_does_not_after_the_mutation() {
    for mutation in mutations() {
        let broken = changed(mutation.key(), |row| row.values_mut().for_each(|value| *value = Value::Null));
        assert!(!drift(&mutation, Some(&broken)).is_empty(), "{}", mutation.key());
        assert_eq!(drift(&mutation, mutation.apply(Some(broken)).as_ref()), [], "{}", mutation.key());
    }
}

#[test]
fn an_edit_of_the_platform_that_is_later_keeps_its_time() {
    let edited = changed(&image(), put("lastModified", json!("2025-08-02T00:00:00.000Z")));
    let row = of(&image()).apply(Some(edited)).expect("a row");
    assert_eq!(row["lastModified"], json!("2025-08-02T00:00:00.000Z"));
    assert_eq!(
        of(&image()).apply(Some(uploaded(&BEACH.parse().unwrap()))).expect("a row")["lastModified"],
        json!(NOON)
    );
}

/// Attributes of somebody else, as text, before and after each of our changes.
#[track_caller]
fn check_foreign(text: &str) {
    let row: Attributes = serde_json::from_str(text).unwrap();
    for mutation in mutations() {
        let after = mutation.apply(Some(row.clone())).expect("a row");
        assert!(after.len() > row.len(), "nothing of ours is set in {}", mutation.key());
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
fn deleting_leaves_no_row() {
    let delete = Mutation::Delete { key: tagging() };
    assert_eq!(delete.apply(Some(changed(&tagging(), |_| {}))), None);
    assert_eq!(delete.apply(None), None);
}
