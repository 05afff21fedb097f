#![allow(clippy::unwrap_used, reason = "a test may panic on unexpected values")]

use std::{io::Write, sync::mpsc, thread};

use sparks_embedded::{FilePublisher, PublishedRetention};
use sparks_engine::{Notification, Publisher, Topic};

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    (folder, path)
}

/// Reads a file whose previous one ends in `.1`.
fn tail(path: &Path) -> FileTail {
    FileTail::new(path, &path.with_extension("1"))
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn all(line: &str) -> Option<String> {
    Some(line.to_owned())
}

/// Reads all new lines.
fn read_new(lines: &mut FileTail) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..3 {
        while let Some(some) = lines.next().unwrap() {
            all.extend(some);
        }
    }
    all
}

#[test]
fn the_last_lines_are_read_backwards() {
    let (_folder, path) = folder();
    let written: Vec<String> = (0..20_000).map(|n| format!("{n} {}", "x".repeat(n % 50))).collect();
    append(&path, &format!("{}\nhalf", written.join("\n")));
    for most in [0, 1, 10, 5000, 20_000, 30_000] {
        let last = tail(&path).last(most, all).unwrap();
        assert_eq!(last, written[written.len().saturating_sub(most)..], "{most}");
    }
    let tens = tail(&path).last(2, |line| line.split_once("99 ").map(|(n, _)| n.to_owned())).unwrap();
    assert_eq!(tens, ["198", "199"]);
}

#[test]
fn a_line_may_be_longer_than_a_chunk() {
    let (_folder, path) = folder();
    let long = "y".repeat(200_000);
    append(&path, &format!("a\n{long}\nb\n{long}"));
    let mut lines = tail(&path);
    assert_eq!(lines.last(3, all).unwrap(), ["a", &long, "b"]);
    append(&path, "!\n");
    assert_eq!(read_new(&mut lines), [format!("{long}!")]);
}

#[test]
fn an_incomplete_line_is_not_returned() {
    let (_folder, path) = folder();
    append(&path, "");
    assert!(tail(&path).last(3, all).unwrap().is_empty());
    append(&path, "half");
    let mut lines = tail(&path);
    assert!(lines.last(3, all).unwrap().is_empty());
    append(&path, " done\n");
    assert_eq!(read_new(&mut lines), ["half done"]);
}

#[test]
fn a_file_may_appear_vanish_be_truncated_and_be_replaced() {
    let (_folder, path) = folder();
    let mut lines = tail(&path);
    assert!(lines.last(3, all).unwrap().is_empty() && read_new(&mut lines).is_empty());
    append(&path, "a\n");
    assert_eq!(read_new(&mut lines), ["a"]);
    append(&path, "b");
    assert!(read_new(&mut lines).is_empty());
    append(&path, "\nc\n");
    assert_eq!(read_new(&mut lines), ["b", "c"]);
    File::create(&path).unwrap();
    append(&path, "d\n");
    assert_eq!(read_new(&mut lines), ["d"], "truncated");
    append(&path, "e\n");
    fs::rename(&path, path.with_extension("1")).unwrap();
    append(&path, "f\ng\n");
    assert_eq!(read_new(&mut lines), ["e", "f", "g"], "replaced");
    fs::remove_file(&path).unwrap();
    assert!(read_new(&mut lines).is_empty());
    append(&path, "h\n");
    assert_eq!(read_new(&mut lines), ["h"], "missing for a while");
}

#[test]
fn the_last_lines_may_be_in_the_previous_file() {
    let (_folder, path) = folder();
    append(&path.with_extension("1"), "a\nb\n");
    assert_eq!(tail(&path).last(1, all).unwrap(), ["b"], "without a current file");
    append(&path, "c\n");
    for (limit, lines) in [(1, &["c"][..]), (2, &["b", "c"]), (5, &["a", "b", "c"])] {
        assert_eq!(tail(&path).last(limit, all).unwrap(), lines, "{limit}");
    }
    let mut lines = tail(&path);
    assert_eq!(lines.last(3, all).unwrap(), ["a", "b", "c"]);
    append(&path, "d\n");
    assert_eq!(read_new(&mut lines), ["d"], "no line is read twice");
}

#[test]
fn a_file_that_is_replaced_twice_is_read_to_its_end() {
    let (_folder, path) = folder();
    append(&path, "a\n");
    let mut lines = tail(&path);
    assert_eq!(lines.last(1, all).unwrap(), ["a"]);
    append(&path, "b\n");
    for line in ["c\n", "d\n"] {
        fs::rename(&path, path.with_extension("1")).unwrap();
        append(&path, line);
    }
    assert_eq!(read_new(&mut lines), ["b", "c", "d"]);
}

/// Several publishers as in several processes: each opens and locks the file by itself.
#[test]
fn no_line_is_lost_when_publishers_replace_the_file() {
    const WRITERS: usize = 4;
    const LINES: usize = 25;
    let (_folder, path) = folder();
    let notification = |writer: usize, n: usize| Notification {
        topic: Topic::Events,
        event_type: "x".into(),
        deduplication: format!("{writer:02}-{n:02}"),
        group: "g".into(),
        body: serde_json::Value::Null,
    };
    // Replaced once: what a reader has not read by the second time may be gone.
    let retention = PublishedRetention { max_file_bytes: Some(WRITERS as u64 * LINES as u64 * 45), max_age: None };
    let previous = FilePublisher::new(path.clone(), retention).previous_path().to_owned();
    let mut lines = FileTail::new(&path, &previous);
    let (finished, finish) = mpsc::channel::<()>();
    let mut found = Vec::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (publisher, finished) = (FilePublisher::new(path.clone(), retention), finished.clone());
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for n in 0..LINES {
                    runtime.block_on(publisher.publish(&[notification(writer, n)])).unwrap();
                }
                drop(finished);
            });
        }
        drop(finished);
        while finish.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            found.extend(lines.next().unwrap().into_iter().flatten());
        }
    });
    found.extend(read_new(&mut lines));
    assert!(previous.exists(), "the file was replaced");
    let id = |line: &String| line.split("\"id\":\"").nth(1).unwrap()[..5].to_owned();
    let mut ids: Vec<String> = found.iter().map(id).collect();
    ids.sort();
    let all: Vec<String> = (0..WRITERS).flat_map(|w| (0..LINES).map(move |n| format!("{w:02}-{n:02}"))).collect();
    assert_eq!(ids, all);
}
