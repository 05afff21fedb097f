//! `sparks load`: correct runs pass, defects are detected, and no worker is left running.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::{
    harness::{Platform, eventually, within},
    sparks::{Sparks, binary},
};

/// Options that make the load as hard as possible.
const EVERYTHING: [&str; 6] = ["--duplicates", "20%", "--corrupt", "5%", "--shuffle", "--json"];

/// Returns `sparks load ...`, which creates its data folder in this folder.
fn load<'a>(under: &Path, args: impl IntoIterator<Item = &'a str>) -> Command {
    fs::create_dir_all(under).unwrap();
    let mut command = Command::new(binary());
    command.arg("load").args(args).current_dir(under).env("TMPDIR", under);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
        command.env_remove(name);
    }
    command
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the names of the checks that failed, and their messages.
fn failures(report: &Value) -> (Vec<&str>, String) {
    let failed = report["checks"].as_array().unwrap().iter().filter(|check| check["holds"] == false);
    let (names, messages): (Vec<_>, Vec<_>) =
        failed.map(|check| (check["name"].as_str().unwrap(), check["failures"].to_string())).unzip();
    (names, messages.join("\n"))
}

/// Returns the number of processes with an argument that starts with this path.
fn processes(path: &Path) -> usize {
    let has_path = |entry: std::io::Result<fs::DirEntry>| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let path = path.as_os_str().as_bytes();
        line.split(|byte| *byte == 0).any(|part| OsStr::from_bytes(part).as_bytes().starts_with(path)).then_some(())
    };
    fs::read_dir("/proc").unwrap().filter_map(has_path).count()
}

fn signal(process: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_correct_run_passes_and_leaves_no_files_or_processes() {
    let sparks = Sparks::new();
    let (folder, page) = (sparks.path("folder"), sparks.path("load.html"));
    let args = ["--photos", "60", "--identities", "10", "--workers", "2", "--jobs", "2", "--report"];
    let output = load(&folder, args).arg(&page).args(EVERYTHING).output().unwrap();
    let report = report(&output);
    assert!(output.status.success(), "{:?}", failures(&report));
    assert_eq!((&report["holds"], failures(&report).0.len()), (&true.into(), 0));
    let figures = &report["figures"];
    assert_eq!((&figures["settled"], &report["run"]["messages"]), (&60.into(), &"72".into()));
    assert!(figures["not_yet"].as_u64().unwrap() > 0, "the first message was sent before its row: {figures}");
    let latency = |of: &str| figures["latency_seconds"][of].as_f64().unwrap();
    assert!(latency("p50") <= latency("p90") && latency("p99") <= latency("max"), "{figures}");
    let workers = figures["workers"].as_array().unwrap();
    let is_measured =
        |worker: &Value| worker["cpu_seconds"].as_f64() > Some(0.0) && worker["peak_bytes"].as_u64() > Some(0);
    assert!(workers.len() == 2 && workers.iter().all(is_measured), "{workers:?}");
    assert_eq!(figures["samples"].as_array().unwrap().last().unwrap()["settled"], 60);

    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 6);
    assert!(page.contains("all checks passed"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "its data folder is removed");
    assert_eq!(processes(&folder), 0);
}

#[test]
fn identities_split_into_several_persons_are_detected() {
    let sparks = Sparks::new();
    let args = ["--photos", "20", "--identities", "3", "--workers", "1", "--json"];
    let output = load(&sparks.path("folder"), args).env("SPARKS_FACES_THRESHOLD", "0.9999").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    let (names, messages) = failures(&report);
    assert!(names.contains(&"every identity is one person"), "{names:?}");
    assert!(messages.contains("identity 0 is person"), "{messages}");
    assert!(!names.contains(&"every photo is processed once"), "{names:?}");
}

#[test]
fn a_person_row_without_an_event_is_detected() {
    let sparks = Sparks::new();
    let folder = sparks.path("folder");
    // Slow enough to insert a row while the load test runs.
    let args = ["--photos", "9", "--identities", "3", "--workers", "1", "--rate", "2/s", "--json"];
    let load = load(&folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let row = r#"{"entityType":"PERSON","displayName":"person77"}"#;
    eventually("the row is inserted", || {
        let data = fs::read_dir(&folder).unwrap().next().map(|folder| folder.unwrap().path().join("sparks.db"));
        let Some(file) = data.filter(|file| file.is_file()) else { return false };
        let database = rusqlite::Connection::open(file).unwrap();
        let events = database.query_row("SELECT count(*) FROM log", [], |row| row.get::<_, i64>(0));
        let insert = "INSERT INTO items (PK, SK, item) VALUES ('PERSON#person77', 'person77', ?)";
        events.is_ok_and(|events| events > 0) && database.execute(insert, [row]).is_ok()
    });
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let (names, messages) = failures(&report);
    assert_eq!(names, ["the table has one PERSON row per person"], "{messages}");
    assert!(messages.contains("person77 has a PERSON row"), "{messages}");
    assert!(report["figures"]["seconds"].as_f64() >= Some(4.0), "two per second: {}", report["figures"]);
}

#[test]
fn a_lost_photo_is_detected() {
    let platform = Platform::new(1, 1);
    let args = ["load", "--photos", "12", "--identities", "3", "--workers", "0", "--timeout", "15s", "--json"];
    let load = platform.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("all messages are sent", || platform.unsettled() == 12);
    let first = "SELECT body FROM messages WHERE id = (SELECT min(id) FROM messages)";
    let body: String = platform.sparks.database().query_row(first, [], |row| row.get(0)).unwrap();
    let lost = body.split("originals/").nth(1).and_then(|rest| rest.split(".jpg").next()).unwrap();
    let remove = "DELETE FROM messages WHERE id = (SELECT min(id) FROM messages)";
    platform.sparks.database().execute(remove, []).unwrap();
    platform.drain();
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let (names, messages) = failures(&report);
    assert!(names.contains(&"every photo is processed once"), "{names:?}");
    assert!(messages.contains(&format!("{lost} is lost")), "{messages}");
    assert_eq!(report["figures"]["settled"], 11);
}

#[test]
fn a_missing_tag_is_detected() {
    let platform = Platform::new(1, 1);
    let args = ["load", "--photos", "12", "--identities", "3", "--workers", "0", "--timeout", "60s", "--json"];
    let load = platform.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("all messages are sent", || platform.unsettled() == 12);
    // One message is delayed, so that the load test does not check the table too early.
    let change = |sql: &str| platform.sparks.database().execute(sql, []).unwrap();
    change("UPDATE messages SET visible = visible + 3600000 WHERE id = (SELECT max(id) FROM messages)");
    let _worker = platform.worker(&[]);
    eventually("one message is left", || platform.unsettled() == 1);
    let tag = "SELECT PK, SK FROM items WHERE SK LIKE 'PERSON#%' ORDER BY PK, SK LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let (image, person) = platform.sparks.database().query_row(tag, [], row).unwrap();
    assert_eq!(change(&format!("DELETE FROM items WHERE PK = '{image}' AND SK = '{person}'")), 1);
    change("UPDATE messages SET visible = 0");
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let (names, messages) = failures(&report);
    assert_eq!(names, ["every tag is right", "the table matches the event log"]);
    assert!(messages.contains(&format!("{image} is tagged")), "{messages}");
    assert!(messages.contains(&format!("{image} / {person}: the row is missing")), "{messages}");
}

/// Starts a load test and waits until it has processed a photo.
fn start_load(sparks: &Sparks) -> Child {
    let args = ["load", "--photos", "400", "--identities", "20", "--workers", "2", "--json"];
    let load = sparks.start(args);
    within(Duration::from_secs(120), "processing has begun", &mut || {
        let database = sparks.data().join("sparks.db").is_file().then(|| sparks.database());
        let count_events =
            |file: rusqlite::Connection| file.query_row("SELECT count(*) FROM log", [], |row| row.get(0));
        database.and_then(|file| count_events(file).ok()).is_some_and(|events: i64| events > 0)
    });
    assert!(processes(&sparks.data()) >= 3, "the load test and two workers");
    load
}

#[test]
fn an_interrupted_load_test_stops_its_workers_and_reports() {
    let sparks = Sparks::new();
    let load = start_load(&sparks);
    signal(&load, "INT");
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    assert!(failures(&report).1.contains("interrupted when"), "{report}");
    assert_eq!(processes(&sparks.data()), 0);
    // No lease is left, so that another worker can receive the rest at once.
    let leased = "SELECT count(*) FROM messages WHERE owner IS NOT NULL";
    assert_eq!(sparks.database().query_row(leased, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn workers_end_with_a_killed_load_test() {
    let sparks = Sparks::new();
    let mut load = start_load(&sparks);
    signal(&load, "KILL");
    load.wait().unwrap();
    eventually("no worker is left", || processes(&sparks.data()) == 0);
}

#[test]
fn wrong_usage_is_refused_and_changes_nothing() {
    let sparks = Sparks::new();
    let folder = sparks.path("folder");
    let album = sparks.synth(3, 2, &[]);
    sparks.text(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let before = sparks.items();
    let refused = |mut command: Command, expected: &str| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.contains(expected)), (Some(2), true), "{text}");
    };
    let size = ["--photos", "5", "--identities", "2"];
    let page = sparks.path("load.html");
    fs::write(&page, "of an earlier run").unwrap();
    let mut again = sparks.command(["load"].into_iter().chain(size));
    again.arg("--report").arg(&page);
    refused(again, "has persons already");
    assert_eq!(fs::read_to_string(&page).unwrap(), "of an earlier run");
    refused(load(&folder, size.into_iter().chain(["--workers", "0"])), "--workers 0 requires --data");
    refused(load(&folder, size.into_iter().chain(["--duplicates", "120%"])), "is not a percentage");
    refused(
        load(&folder, size.into_iter().chain(["--through", "bucket", "--report", "load.html"])),
        "does not notify the queue",
    );
    refused(
        load(&folder, size.into_iter().chain(["--report", "missing/load.html"])),
        "failed to write missing/load.html",
    );
    assert_eq!(sparks.items(), before, "nothing was changed");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
