#![allow(clippy::unwrap_used, reason = "a test may panic on unexpected values")]

use std::io::Write;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    (folder, path)
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
        let last = FileTail::new(&path).last(most, all).unwrap();
        assert_eq!(last, written[written.len().saturating_sub(most)..], "{most}");
    }
    let tens = FileTail::new(&path).last(2, |line| line.split_once("99 ").map(|(n, _)| n.to_owned())).unwrap();
    assert_eq!(tens, ["198", "199"]);
}

#[test]
fn a_line_may_be_longer_than_a_chunk() {
    let (_folder, path) = folder();
    let long = "y".repeat(200_000);
    append(&path, &format!("a\n{long}\nb\n{long}"));
    let mut lines = FileTail::new(&path);
    assert_eq!(lines.last(3, all).unwrap(), ["a", &long, "b"]);
    append(&path, "!\n");
    assert_eq!(read_new(&mut lines), [format!("{long}!")]);
}

#[test]
fn an_incomplete_line_is_not_returned() {
    let (_folder, path) = folder();
    append(&path, "");
    assert!(FileTail::new(&path).last(3, all).unwrap().is_empty());
    append(&path, "half");
    let mut lines = FileTail::new(&path);
    assert!(lines.last(3, all).unwrap().is_empty());
    append(&path, " done\n");
    assert_eq!(read_new(&mut lines), ["half done"]);
}

#[test]
fn a_file_may_appear_vanish_be_truncated_and_be_replaced() {
    let (_folder, path) = folder();
    let mut lines = FileTail::new(&path);
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
