//! `sparks doctor` on a data folder, healthy and damaged.

use std::{fs, net::TcpListener, process::Output};

use crate::sparks::Sparks;

/// Returns a data folder with photos.
fn filled() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 2, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    sparks
}

fn examine(sparks: &Sparks) -> Output {
    sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap()
}

/// Asserts that the report has a line with this state, subject and remedy, and that the exit code matches the state.
fn check(output: &Output, state: &str, subject: &str, remedy: &str) {
    let text = String::from_utf8_lossy(&output.stdout);
    let matches = |line: &&str| line.starts_with(&format!("{state:<5} {subject}")) && line.contains(remedy);
    assert!(text.lines().any(|line| matches(&line)), "no line {state} {subject} ... {remedy}:\n{text}");
    assert_eq!(output.status.code(), Some(i32::from(state == "fail")), "{text}");
}

#[test]
fn a_healthy_or_missing_data_folder_passes() {
    check(&examine(&Sparks::new()), "ok", "data folder", "a worker creates it");
    let sparks = filled();
    let before = (sparks.items(), fs::read_dir(sparks.data()).unwrap().count());
    let healthy = examine(&sparks);
    check(&healthy, "ok", "database", "is intact");
    assert!(String::from_utf8_lossy(&healthy.stdout).ends_with("a worker can run here\n"), "{healthy:?}");
    assert_eq!(
        (sparks.items(), fs::read_dir(sparks.data()).unwrap().count()),
        before,
        "doctor changed the data folder"
    );
}

#[test]
fn a_damaged_database_fails() {
    let sparks = filled();
    let path = sparks.data().join("sparks.db");
    sparks.database().pragma_update(None, "wal_checkpoint", "truncate").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let from = bytes.len() / 4;
    bytes[from..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    check(&examine(&sparks), "fail", "database", "backup");
}

#[test]
fn missing_objects_and_a_newer_database_fail() {
    let sparks = filled();
    fs::rename(sparks.data().join("objects"), sparks.path("away")).unwrap();
    check(&examine(&sparks), "fail", "folder", "mount it again");
    fs::rename(sparks.path("away"), sparks.data().join("objects")).unwrap();
    sparks.database().pragma_update(None, "user_version", 99).unwrap();
    check(&examine(&sparks), "fail", "database", "newer sparks");
}

#[test]
fn a_file_in_place_of_the_data_folder_fails() {
    let sparks = Sparks::new();
    fs::write(sparks.data(), "a file").unwrap();
    check(&examine(&sparks), "fail", "data folder", "--data");
}

#[test]
fn persons_without_a_log_fail_and_no_worker_starts() {
    let sparks = Sparks::new();
    sparks.command(["run", "--drain"]).env("SPARKS_RUN_LISTEN", "127.0.0.1:0").output().unwrap();
    let row = r#"INSERT INTO items (PK, SK, item) VALUES ('UNKNOWN_PERSONS', 'UNKNOWN_PERSONS', '{"limit":7}')"#;
    sparks.database().execute(row, []).unwrap();
    check(&examine(&sparks), "fail", "persons missing from the event log", "sparks adopt");
    let refused = sparks.run(["run", "--drain"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("at 7") && text.contains("sparks adopt"), "{text}");
}

#[test]
fn an_unusable_listen_address_is_reported() {
    let sparks = Sparks::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", &address).output().unwrap();
    check(&output, "warn", "run.listen", "in use by another program");
    let output = sparks.command(["doctor"]).env("SPARKS_RUN_LISTEN", "nowhere").output().unwrap();
    check(&output, "fail", "run.listen", "HOST:PORT");
}

#[test]
fn invalid_settings_are_exit_code_2() {
    let sparks = Sparks::new();
    let output = sparks.command(["doctor"]).env("SPARKS_JOBS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("jobs"), "{output:?}");
}
