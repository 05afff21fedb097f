//! `sparks send`.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::sparks::Sparks;

/// Returns the message bodies in the queue, in the order in which they were sent.
fn queued(sparks: &Sparks) -> Vec<String> {
    let database = sparks.database();
    let mut bodies = database.prepare("SELECT body FROM messages ORDER BY id").unwrap();
    bodies.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn run_with_input(sparks: &Sparks, args: &[&str], text: &[u8]) -> Output {
    let mut command = sparks.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn each_file_is_a_message_and_equal_ones_are_all_sent() {
    let sparks = Sparks::new();
    std::fs::write(sparks.path("a.json"), "{\n  \"a\": 1\n}\n").unwrap();
    std::fs::write(sparks.path("b.txt"), "whatever\nit says").unwrap();
    let ids = sparks.text(["send", "a.json", "b.txt", "a.json"]);
    let ids: BTreeSet<&str> = ids.lines().collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let again: Value = sparks.json(["send", "a.json"]);
    assert_eq!(again["file"], "a.json");
    assert!(!ids.contains(again["message_id"].as_str().unwrap()));
    let (a, b) = ("{\n  \"a\": 1\n}\n", "whatever\nit says");
    assert_eq!(queued(&sparks), [a, b, a, a]);
}

#[test]
fn each_line_is_a_message_with_lines() {
    let sparks = Sparks::new();
    let output = run_with_input(&sparks, &["send", "--lines", "-", "--json"], b"one\r\n\n  \ntwo\ntwo");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<&Value> = lines.iter().map(|line| &line["line"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(4), &json!(5)]);
    assert_eq!(queued(&sparks), ["one", "two", "two"]);
}

#[test]
fn one_invalid_message_refuses_all() {
    let sparks = Sparks::new();
    std::fs::write(sparks.path("good"), "x".repeat(1 << 20)).unwrap();
    std::fs::write(sparks.path("empty"), " \n\n").unwrap();
    std::fs::write(sparks.path("long"), "x".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(sparks.path("latin"), b"Gr\xfc\xdfe").unwrap();
    std::fs::write(sparks.path("mixed"), format!("short\n{}", "x".repeat((1 << 20) + 1))).unwrap();
    let check = |args: &[&str], expected: &str| {
        let output = sparks.run(["send", "good"].iter().chain(args));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
        assert!(output.stdout.is_empty() && !sparks.data().exists(), "{args:?} sent something");
    };
    check(&["empty"], "empty is empty");
    check(&["long"], "long is longer than 1 MiB");
    check(&["latin"], "latin is not UTF-8 text from byte 2 on");
    check(&["missing"], "missing: ");
    check(&["."], ".: ");
    check(&["--lines", "mixed"], "line 2 of mixed is longer");
    check(&["-", "-"], "only once");
    assert_eq!(run_with_input(&sparks, &["send", "-"], b"").status.code(), Some(2), "no input");
    assert_eq!(sparks.text(["send", "good"]).lines().count(), 1, "a message of 1 MiB is accepted");
}
