//! `sparks load`: right runs pass, wrong ones do not, and nobody is left behind.

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
    platform::{Platform, eventually, within},
    sparks::{Sparks, binary},
};

/// Everything that can go wrong by itself.
const EVERYTHING: [&str; 6] = ["--duplicates", "20%", "--corrupt", "5%", "--shuffle", "--json"];

/// `sparks load ...` in a folder that it makes under this one.
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
    let said = || format!("{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said()))
}

/// The checks that do not hold, and all that they say.
fn failures(report: &Value) -> (Vec<&str>, String) {
    let failed = report["checks"].as_array().unwrap().iter().filter(|check| check["holds"] == false);
    let (names, words): (Vec<_>, Vec<_>) =
        failed.map(|check| (check["name"].as_str().unwrap(), check["failures"].to_string())).unzip();
    (names, words.join("\n"))
}

/// Processes whose command line holds this.
fn processes(words: &Path) -> usize {
    let is_its = |entry: std::io::Result<fs::DirEntry>| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let words = words.as_os_str().as_bytes();
        line.split(|byte| *byte == 0).any(|part| OsStr::from_bytes(part).as_bytes().starts_with(words)).then_some(())
    };
    fs::read_dir("/proc").unwrap().filter_map(is_its).count()
}

fn signal(process: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_run_that_is_right_passes_and_leaves_nothing() {
    let sparks = Sparks::new();
    let (folder, page) = (sparks.path("here"), sparks.path("load.html"));
    let args = ["--photos", "120", "--identities", "15", "--workers", "2", "--jobs", "2", "--report"];
    let output = load(&folder, args).arg(&page).args(EVERYTHING).output().unwrap();
    let report = report(&output);
    assert!(output.status.success(), "{:?}", failures(&report));
    assert_eq!((&report["holds"], failures(&report).0.len()), (&true.into(), 0));
    let figures = &report["figures"];
    assert_eq!((&figures["settled"], &report["run"]["messages"]), (&120.into(), &"144".into()));
    assert!(figures["not_yet"].as_u64().unwrap() > 0, "the first message came before its row: {figures}");
    let latency = |of: &str| figures["latency_seconds"][of].as_f64().unwrap();
    assert!(latency("p50") <= latency("p90") && latency("p99") <= latency("max"), "{figures}");
    let workers = figures["workers"].as_array().unwrap();
    let took = |worker: &Value| worker["cpu_seconds"].as_f64() > Some(0.0) && worker["peak_bytes"].as_u64() > Some(0);
    assert!(workers.len() == 2 && workers.iter().all(took), "{workers:?}");
    assert_eq!(figures["samples"].as_array().unwrap().last().unwrap()["settled"], 120);

    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 6);
    assert!(page.contains("everything is as it must be"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "its data folder is gone");
    assert_eq!(processes(&folder), 0);
}

#[test]
fn strangers_who_are_never_known_again_are_found_out() {
    let sparks = Sparks::new();
    let args = ["--photos", "20", "--identities", "3", "--workers", "1", "--json"];
    let output = load(&sparks.path("here"), args).env("SPARKS_FACES_THRESHOLD", "0.9999").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = report(&output);
    let (names, words) = failures(&report);
    assert!(names.contains(&"nobody is two persons"), "{names:?}");
    assert!(words.contains("identity 0 is person"), "{words}");
    assert!(!names.contains(&"every photo is processed once"), "{names:?}");
}

#[test]
fn somebody_whom_the_log_does_not_know_is_found_out() {
    let sparks = Sparks::new();
    let here = sparks.path("here");
    // Slow enough that there is time to put somebody into the table while it runs.
    let args = ["--photos", "9", "--identities", "3", "--workers", "1", "--rate", "2/s", "--json"];
    let load = load(&here, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let row = r#"{"entityType":"PERSON","displayName":"person77"}"#;
    eventually("somebody is known", || {
        let data = fs::read_dir(&here).unwrap().next().map(|folder| folder.unwrap().path().join("sparks.db"));
        let Some(file) = data.filter(|file| file.is_file()) else { return false };
        let database = rusqlite::Connection::open(file).unwrap();
        let known = database.query_row("SELECT count(*) FROM log", [], |row| row.get::<_, i64>(0));
        let insert = "INSERT INTO items (PK, SK, item) VALUES ('PERSON#person77', 'person77', ?)";
        known.is_ok_and(|known| known > 0) && database.execute(insert, [row]).is_ok()
    });
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let (names, words) = failures(&report);
    assert_eq!(names, ["the table has everybody once"], "{words}");
    assert!(words.contains("person77 has a PERSON row"), "{words}");
    assert!(report["figures"]["seconds"].as_f64() >= Some(4.0), "two a second: {}", report["figures"]);
}

#[test]
fn a_lost_photo_is_found_out() {
    let platform = Platform::new(1, 1);
    let args = ["load", "--photos", "12", "--identities", "3", "--workers", "0", "--timeout", "25s", "--json"];
    let load = platform.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("all is sent", || platform.unsettled() == 12);
    let first = "SELECT body FROM messages WHERE id = (SELECT min(id) FROM messages)";
    let body: String = platform.sparks.database().query_row(first, [], |row| row.get(0)).unwrap();
    let lost = body.split("originals/").nth(1).and_then(|rest| rest.split(".jpg").next()).unwrap();
    let steal = "DELETE FROM messages WHERE id = (SELECT min(id) FROM messages)";
    platform.sparks.database().execute(steal, []).unwrap();
    platform.drain();
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    let (names, words) = failures(&report);
    assert!(names.contains(&"every photo is processed once"), "{names:?}");
    assert!(words.contains(&format!("{lost} is lost")), "{words}");
    assert_eq!(report["figures"]["settled"], 11);
}

#[test]
fn a_wrong_tag_is_found_out() {
    let platform = Platform::new(1, 1);
    let args = ["load", "--photos", "12", "--identities", "3", "--workers", "0", "--timeout", "60s", "--json"];
    let load = platform.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("all is sent", || platform.unsettled() == 12);
    // One message comes later, so that nobody looks before we are done.
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
    let (names, words) = failures(&report);
    assert_eq!(names, ["every tag is right", "the table is what the log says"]);
    assert!(words.contains(&format!("{image} is tagged")), "{words}");
    assert!(words.contains(&format!("{image} / {person}: the row is missing")), "{words}");
}

/// A load test in the middle of its work, in a data folder of its own.
fn under_way(sparks: &Sparks) -> Child {
    let args = ["load", "--photos", "400", "--identities", "20", "--workers", "2", "--json"];
    let load = sparks.start(args);
    within(Duration::from_secs(120), "work has begun", &mut || {
        let database = sparks.data().join("sparks.db").is_file().then(|| sparks.database());
        let decided = |file: rusqlite::Connection| file.query_row("SELECT count(*) FROM log", [], |row| row.get(0));
        database.and_then(|file| decided(file).ok()).is_some_and(|events: i64| events > 0)
    });
    assert!(processes(&sparks.data()) >= 3, "it and two workers");
    load
}

#[test]
fn interrupted_it_stops_its_workers_and_tells_what_it_saw() {
    let sparks = Sparks::new();
    let load = under_way(&sparks);
    signal(&load, "INT");
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    assert!(failures(&report).1.contains("interrupted when"), "{report}");
    assert_eq!(processes(&sparks.data()), 0);
    // What is left is left in order: somebody else can have it at once.
    let leased = "SELECT count(*) FROM messages WHERE owner IS NOT NULL";
    assert_eq!(sparks.database().query_row(leased, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn killed_it_takes_its_workers_along() {
    let sparks = Sparks::new();
    let mut load = under_way(&sparks);
    signal(&load, "KILL");
    load.wait().unwrap();
    eventually("no worker is left", || processes(&sparks.data()) == 0);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let sparks = Sparks::new();
    let here = sparks.path("here");
    let album = sparks.synth(3, 2, &[]);
    sparks.text(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let before = sparks.items();
    let refused = |mut command: Command, words: &str| {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(words)), (Some(2), true), "{said}");
    };
    let size = ["--photos", "5", "--identities", "2"];
    let page = sparks.path("load.html");
    fs::write(&page, "of an earlier run").unwrap();
    let mut again = sparks.command(["load"].into_iter().chain(size));
    again.arg("--report").arg(&page);
    refused(again, "has persons already");
    assert_eq!(fs::read_to_string(&page).unwrap(), "of an earlier run");
    refused(load(&here, size.into_iter().chain(["--workers", "0"])), "--workers 0 needs --data");
    refused(load(&here, size.into_iter().chain(["--duplicates", "120%"])), "is no share");
    refused(
        load(&here, size.into_iter().chain(["--through", "bucket", "--report", "load.html"])),
        "does not tell the queue",
    );
    refused(load(&here, size.into_iter().chain(["--report", "missing/load.html"])), "cannot write missing/load.html");
    assert_eq!(sparks.items(), before, "nothing was touched");
    assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
}
