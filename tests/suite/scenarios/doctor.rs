//! What `sparks doctor` says of a data folder, well and broken.

use std::{fs, net::TcpListener, process::Output};

use crate::sparks::Sparks;

/// A data folder with photos in it.
fn filled() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 2, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    sparks
}

fn examined(sparks: &Sparks) -> Output {
    sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap()
}

/// There is a line that begins and goes on like this, and the exit code is that of its state.
fn check(output: &Output, state: &str, what: &str, remedy: &str) {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_it = |line: &&str| line.starts_with(&format!("{state:<5} {what}")) && line.contains(remedy);
    assert!(text.lines().any(|line| is_it(&line)), "no line {state} {what} ... {remedy}:\n{text}");
    assert_eq!(output.status.code(), Some(i32::from(state == "fail")), "{text}");
}

#[test]
fn a_folder_that_is_well_or_not_there_yet_is_well() {
    check(&examined(&Sparks::new()), "ok", "data folder", "a worker makes it");
    let sparks = filled();
    let before = (sparks.items(), fs::read_dir(sparks.data()).unwrap().count());
    let well = examined(&sparks);
    check(&well, "ok", "database", "is whole");
    assert!(String::from_utf8_lossy(&well.stdout).ends_with("a worker would work here\n"), "{well:?}");
    assert_eq!((sparks.items(), fs::read_dir(sparks.data()).unwrap().count()), before, "looking left a trace");
}

#[test]
fn a_damaged_database_is_told() {
    let sparks = filled();
    let path = sparks.data().join("sparks.db");
    sparks.database().pragma_update(None, "wal_checkpoint", "truncate").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let from = bytes.len() / 4;
    bytes[from..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    check(&examined(&sparks), "fail", "database", "backup");
}

#[test]
fn a_database_of_another_version_and_objects_that_are_away_are_told() {
    let sparks = filled();
    fs::rename(sparks.data().join("objects"), sparks.path("away")).unwrap();
    check(&examined(&sparks), "fail", "folder", "mount it again");
    fs::rename(sparks.path("away"), sparks.data().join("objects")).unwrap();
    sparks.database().pragma_update(None, "user_version", 99).unwrap();
    check(&examined(&sparks), "fail", "database", "newer sparks");
}

#[test]
fn a_place_where_no_folder_can_be_is_told() {
    let sparks = Sparks::new();
    fs::write(sparks.data(), "a file").unwrap();
    check(&examined(&sparks), "fail", "data folder", "--data");
}

#[test]
fn persons_without_a_log_are_told_and_no_worker_founds_them_again() {
    let sparks = Sparks::new();
    sparks.command(["run", "--drain"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap();
    let row = r#"INSERT INTO items (PK, SK, item) VALUES ('UNKNOWN_PERSONS', 'UNKNOWN_PERSONS', '{"limit":7}')"#;
    sparks.database().execute(row, []).unwrap();
    check(&examined(&sparks), "fail", "persons that the log does not know", "sparks adopt");
    let refused = sparks.run(["run", "--drain"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("at 7") && words.contains("sparks adopt"), "{words}");
}

#[test]
fn an_address_that_somebody_else_has_is_told() {
    let sparks = Sparks::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", &address).output().unwrap();
    check(&output, "warn", "run.listen", "something else has it");
    let output = sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", "nowhere").output().unwrap();
    check(&output, "fail", "run.listen", "HOST:PORT");
}

#[test]
fn settings_that_are_wrong_are_no_work_for_a_doctor() {
    let sparks = Sparks::new();
    let output = sparks.command(["doctor"]).env("SPARKS_JOBS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("jobs"), "{output:?}");
}
