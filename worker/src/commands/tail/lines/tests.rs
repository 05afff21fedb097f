#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop")]

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

/// Everything new.
fn new(lines: &mut Lines) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..3 {
        while let Some(some) = lines.next().unwrap() {
            all.extend(some);
        }
    }
    all
}

#[test]
fn the_last_lines_are_found_from_behind() {
    let (_folder, path) = folder();
    let written: Vec<String> = (0..20_000).map(|n| format!("{n} {}", "x".repeat(n % 50))).collect();
    append(&path, &format!("{}\nhalf", written.join("\n")));
    for most in [0, 1, 10, 5000, 20_000, 30_000] {
        let last = Lines::of(&path).last(most, all).unwrap();
        assert_eq!(last, written[written.len().saturating_sub(most)..], "{most}");
    }
    let tens = Lines::of(&path).last(2, |line| line.split_once("99 ").map(|(n, _)| n.to_owned())).unwrap();
    assert_eq!(tens, ["198", "199"]);
}

#[test]
fn a_line_may_be_longer_than_what_is_read_at_once() {
    let (_folder, path) = folder();
    let long = "y".repeat(200_000);
    append(&path, &format!("a\n{long}\nb\n{long}"));
    let mut lines = Lines::of(&path);
    assert_eq!(lines.last(3, all).unwrap(), ["a", &long, "b"]);
    append(&path, "!\n");
    assert_eq!(new(&mut lines), [format!("{long}!")]);
}

#[test]
fn empty_files_and_halves_have_no_lines() {
    let (_folder, path) = folder();
    append(&path, "");
    assert!(Lines::of(&path).last(3, all).unwrap().is_empty());
    append(&path, "half");
    let mut lines = Lines::of(&path);
    assert!(lines.last(3, all).unwrap().is_empty());
    append(&path, " done\n");
    assert_eq!(new(&mut lines), ["half done"]);
}

#[test]
fn a_file_may_come_go_be_cut_and_be_replaced() {
    let (_folder, path) = folder();
    let mut lines = Lines::of(&path);
    assert!(lines.last(3, all).unwrap().is_empty() && new(&mut lines).is_empty());
    append(&path, "a\n");
    assert_eq!(new(&mut lines), ["a"]);
    append(&path, "b");
    assert!(new(&mut lines).is_empty());
    append(&path, "\nc\n");
    assert_eq!(new(&mut lines), ["b", "c"]);
    File::create(&path).unwrap();
    append(&path, "d\n");
    assert_eq!(new(&mut lines), ["d"], "cut");
    append(&path, "e\n");
    fs::rename(&path, path.with_extension("1")).unwrap();
    append(&path, "f\ng\n");
    assert_eq!(new(&mut lines), ["e", "f", "g"], "replaced");
    fs::remove_file(&path).unwrap();
    assert!(new(&mut lines).is_empty());
    append(&path, "h\n");
    assert_eq!(new(&mut lines), ["h"], "gone for a while");
}
