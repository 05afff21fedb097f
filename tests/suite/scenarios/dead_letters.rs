//! `sparks dlq`: list, show, filter, replay, export and drop dead letters.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sparks::Sparks;

const IMAGE: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

/// Returns a data folder with four dead letters: two malformed ones, and two for another bucket, one of them about [`IMAGE`].
fn with_dead_letters() -> Sparks {
    let sparks = Sparks::new();
    let other = |key: &str| json!({ "bucketName": "elsewhere", "objectKey": key }).to_string();
    let about = other(&format!("originals/{IMAGE}.jpg"));
    let bodies = ["not JSON \u{1b}[2J".to_owned(), "{\"x\":1}".into(), about, other("originals/x.jpg")];
    std::fs::write(sparks.path("bodies"), bodies.join("\n")).unwrap();
    sparks.text(["send", "--lines", "bodies"]);
    drain(&sparks);
    sparks
}

/// Drains the queue, as every ingest does.
fn drain(sparks: &Sparks) {
    let album = sparks.path("album");
    if !album.exists() {
        sparks.synth(1, 1, &[]);
    }
    sparks.run(["ingest", album.to_str().unwrap(), "--faces", "off", "--jobs", "1"]);
}

fn lines(sparks: &Sparks, args: &[&str]) -> Vec<Value> {
    sparks.text(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(sparks: &Sparks, filter: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ["dlq", "ls", "--json"].iter().chain(filter).copied().collect();
    lines(sparks, &args).iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the number of messages in the queue.
fn queued(sparks: &Sparks) -> u32 {
    sparks.database().query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap()
}

#[test]
fn commands_succeed_without_dead_letters() {
    let sparks = Sparks::new();
    drain(&sparks);
    assert_eq!(sparks.text(["dlq", "ls"]), "no dead letters\n");
    assert_eq!(sparks.text(["dlq", "ls", "--by", "reason"]), "no dead letters\n");
    assert_eq!(sparks.text(["dlq", "ls", "--json"]), "");
    assert_eq!(sparks.text(["dlq", "export"]), "");
    assert_eq!(sparks.json(["dlq", "replay", "--all"])["replayed"], 0);
    assert_eq!(sparks.run(["dlq", "show", "1"]).status.code(), Some(1));
}

#[test]
fn wrong_usage_is_exit_code_2_and_changes_nothing() {
    let sparks = with_dead_letters();
    let before = sparks.text(["dlq", "export"]);
    for wrong in [
        &["dlq", "replay"][..],
        &["dlq", "drop"],
        &["dlq", "drop", "--dry-run"],
        &["dlq", "drop", "--all", "--reason", "malformed"],
        &["dlq", "drop", "1", "--all"],
        &["dlq", "drop", "1", "--since", "1h"],
        &["dlq", "drop", "--reason", ""],
        &["dlq", "drop", "--image", ""],
        &["dlq", "ls", "--since", "yesterday"],
        &["dlq", "ls", "--by", "image"],
        &["dlq", "replay", "--all", "--rate", "0"],
    ] {
        let output = sparks.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(sparks.text(["dlq", "export"]), before);
}

#[test]
fn dead_letters_are_listed_counted_and_shown() {
    let sparks = with_dead_letters();
    let all = lines(&sparks, &["dlq", "ls", "--json"]);
    let causes: Vec<&str> = all.iter().map(|letter| letter["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["malformed", "malformed", "other-bucket", "other-bucket"]);
    let text = sparks.text(["dlq", "ls", "--limit", "1"]);
    assert!(text.contains("... and 3 more"), "{text}");
    assert_eq!(ids(&sparks, &["--limit", "3"]).len(), 3);

    let counted = lines(&sparks, &["dlq", "ls", "--by", "reason", "--json", "--reason", "malformed"]);
    assert_eq!((&counted[0]["cause"], &counted[0]["letters"]), (&json!("malformed"), &json!(2)));
    assert!(counted[0]["oldest"].as_str() <= counted[0]["newest"].as_str());

    let shown = sparks.text(["dlq", "show", all[1]["id"].as_str().unwrap()]);
    assert!(shown.contains("{\n  \"x\": 1\n}"), "indented: {shown}");
    let shown = sparks.text(["dlq", "show", all[0]["id"].as_str().unwrap()]);
    assert!(shown.contains("not JSON \u{fffd}[2J"), "control characters are replaced: {shown}");
    let whole = sparks.json(["dlq", "show", all[1]["id"].as_str().unwrap()]);
    assert_eq!((&whole["body"], &whole["message"]), (&json!("{\"x\":1}"), &json!({ "x": 1 })));
}

#[test]
fn filters_select_by_cause_text_photo_and_time() {
    let sparks = with_dead_letters();
    let all = ids(&sparks, &[]);
    assert_eq!(ids(&sparks, &["--reason", "other-bucket"]), all[2..]);
    assert_eq!(ids(&sparks, &["--reason", "ELSEWHERE"]), all[2..], "text matches in any case");
    assert_eq!(ids(&sparks, &["--image", IMAGE]), all[2..3]);
    assert_eq!(ids(&sparks, &["--since", "1h"]), all);
    assert!(ids(&sparks, &["--since", "2999-01-01"]).is_empty());
    let old = "UPDATE dead_letters SET died = died - 7200000 WHERE id = ?";
    sparks.database().execute(old, [all[0].parse::<i64>().unwrap()]).unwrap();
    assert_eq!(ids(&sparks, &["--since", "1h"]), all[1..]);
    assert_eq!(ids(&sparks, &["--since", "1h", "--reason", "malformed"]), all[1..2]);
}

#[test]
fn replay_sends_exactly_the_selected_dead_letters() {
    let sparks = with_dead_letters();
    let all = ids(&sparks, &[]);
    assert_eq!(sparks.json(["dlq", "replay", "--all", "--dry-run"])["replayed"], 4);
    assert_eq!((ids(&sparks, &[]), queued(&sparks)), (all.clone(), 0), "a dry run changes nothing");

    let some = sparks.run(["dlq", "replay", &all[0], "777", &all[2], "--json"]);
    assert_eq!(some.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&some.stderr).contains("dead letter 777 does not exist"));
    let report: Value = serde_json::from_slice(&some.stdout).unwrap();
    assert_eq!((&report["replayed"], &report["unknown"]), (&json!(2), &json!(["777"])));
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (2, 2), "the existing ones are replayed");

    assert_eq!(sparks.json(["dlq", "replay", "--reason", "malformed"])["replayed"], 1);
    assert_eq!(sparks.text(["dlq", "replay", "--all"]), "1 dead letter replayed\n");
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (0, 4));
    drain(&sparks);
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (4, 0), "they are dead letters again");
}

#[test]
fn replay_keeps_its_rate_and_loses_nothing_when_killed() {
    let sparks = with_dead_letters();
    let started = Instant::now();
    assert_eq!(sparks.json(["dlq", "replay", "--reason", "malformed", "--rate", "2/s"])["replayed"], 2);
    assert!(started.elapsed() >= Duration::from_millis(500), "{:?}", started.elapsed());
    let mut slow = sparks.start(["dlq", "replay", "--all", "--rate", "1/min"]);
    while queued(&sparks) < 3 {
        assert!(started.elapsed() < Duration::from_secs(60), "the first is replayed at once");
        std::thread::sleep(Duration::from_millis(20));
    }
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (1, 3));
    assert_eq!(sparks.json(["dlq", "replay", "--all"])["replayed"], 1);
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (0, 4));
}

#[test]
fn drop_removes_dead_letters_and_export_keeps_a_copy() {
    let sparks = with_dead_letters();
    let all = ids(&sparks, &[]);
    std::fs::write(sparks.path("copy.jsonl"), "what was there before").unwrap();
    assert_eq!(sparks.json(["dlq", "export", "-o", "copy.jsonl"])["exported"], 4);
    let copy = std::fs::read_to_string(sparks.path("copy.jsonl")).unwrap();
    assert_eq!(copy, sparks.text(["dlq", "export"]));
    let first: Value = serde_json::from_str(copy.lines().next().unwrap()).unwrap();
    for key in ["id", "cause", "reason", "sent", "died", "receives", "body"] {
        assert!(first.get(key).is_some(), "{key}");
    }
    let files: Vec<_> = std::fs::read_dir(sparks.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!files.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{files:?}");

    assert_eq!(sparks.json(["dlq", "drop", "--image", IMAGE])["dropped"], 1);
    assert_eq!(sparks.json(["dlq", "drop", &all[0], &all[0]])["dropped"], 1);
    assert_eq!(ids(&sparks, &[]), [all[1].clone(), all[3].clone()]);
    assert_eq!(sparks.run(["dlq", "drop", &all[0]]).status.code(), Some(1), "dropped before");
    assert_eq!(sparks.json(["dlq", "drop", "--all"])["dropped"], 2);
    assert_eq!((ids(&sparks, &[]).len(), queued(&sparks)), (0, 0));
}

#[test]
fn expired_dead_letters_are_deleted_and_logged_with_their_causes() {
    let sparks = with_dead_letters();
    let (other_bucket, malformed) =
        (ids(&sparks, &["--reason", "other-bucket"]), ids(&sparks, &["--reason", "malformed"]));
    assert_eq!((other_bucket.len(), malformed.len()), (2, 2));
    let age = |id: &str, days: i64| {
        let sql = "UPDATE dead_letters SET died = died - ? WHERE id = ?";
        sparks.database().execute(sql, (days * 86_400_000, id.parse::<i64>().unwrap())).unwrap();
    };
    age(&other_bucket[0], 15);
    age(&malformed[0], 15);
    age(&malformed[1], 400);
    age(&other_bucket[1], 13);
    let drain = |retention: Option<&str>| {
        let mut run = sparks.command(["run", "--drain", "--listen", "127.0.0.1:0", "--faces", "off"]);
        run.envs(retention.map(|days| ("SPARKS_QUEUE_DEAD_LETTER_RETENTION_DAYS", days)));
        String::from_utf8(run.output().unwrap().stderr).unwrap()
    };
    assert!(!drain(None).contains("expired"), "dead letters are kept by default");
    assert_eq!(ids(&sparks, &[]).len(), 4);
    let log = drain(Some("14"));
    let line =
        log.lines().find(|line| line.contains("deleted expired dead letters")).unwrap_or_else(|| panic!("{log}"));
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["count"], &line["retention_days"]), (&json!("warn"), &json!(3), &json!(14)));
    assert_eq!(line["causes"], "malformed: 2, other-bucket: 1");
    assert_eq!(ids(&sparks, &[]), other_bucket[1..]);
}
