//! `sparks tail`: published events, printed as they are published.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::Value;

use crate::sparks::Sparks;

fn album() -> Sparks {
    let sparks = Sparks::new();
    let album = sparks.synth(4, 2, &["--faces-per-photo", "1"]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic", "--jobs", "1"]);
    sparks
}

fn published(sparks: &Sparks) -> Vec<String> {
    let lines = std::fs::read_to_string(sparks.data().join("published.jsonl")).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// Starts `sparks tail -f ...`. Returns its lines as it prints them.
fn follow(sparks: &Sparks, args: &[&str]) -> (Child, Receiver<String>) {
    let mut tail = sparks.start(["tail", "-f"].iter().chain(args));
    let (send, lines) = channel();
    let out = BufReader::new(tail.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    (tail, lines)
}

fn interrupt(tail: Child) {
    let sent = std::process::Command::new("kill").args(["-INT", &tail.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = tail.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn next(lines: &Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(30)).expect("a line within 30 s")
}

#[test]
fn the_last_events_are_printed() {
    let sparks = album();
    let all = published(&sparks);
    assert!(all.len() >= 10, "{} events", all.len());
    let json = sparks.text(["tail", "--json"]);
    assert_eq!(json.lines().collect::<Vec<_>>(), all[all.len() - 10..]);
    assert_eq!(sparks.text(["tail", "--json", "-n", "1000"]).lines().count(), all.len());
    assert_eq!(sparks.text(["tail", "-n", "0"]), "");
    let persons = sparks.text(["tail", "-n", "1", "--type", "PersonAllocated"]);
    let event: Value = serde_json::from_str(all.iter().rfind(|l| l.contains("\"PersonAllocated\"")).unwrap()).unwrap();
    for field in [&event["message"]["occurredAt"], &event["id"], &event["message"]["data"]["personId"]] {
        assert!(persons.contains(field.as_str().unwrap()), "{field} is not in {persons}");
    }
    assert_eq!(persons.lines().count(), 1);
    let both = ["tail", "--json", "-n", "1000", "--type", "PersonAllocated", "--type", "thumbnail-completed"];
    assert_eq!(sparks.text(both).lines().count(), 2 + 4);
}

#[test]
fn follow_survives_truncation_and_replacement_of_the_file() {
    let sparks = album();
    let file = sparks.data().join("published.jsonl");
    let all = published(&sparks);
    std::fs::remove_file(&file).unwrap();
    let (tail, lines) = follow(&sparks, &["--json"]);
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(&file, format!("{}\n{}", all[0], &all[1][..20])).unwrap();
    assert_eq!(next(&lines), all[0], "the file did not exist before");
    std::fs::write(&file, format!("{}\n{}\n", all[0], all[1])).unwrap();
    assert_eq!(next(&lines), all[1], "the line was incomplete before");
    std::fs::write(&file, format!("{}\n", all[2])).unwrap();
    assert_eq!(next(&lines), all[2], "truncated");
    std::fs::write(sparks.path("new"), format!("half a li\n{}\n", all[3])).unwrap();
    std::fs::rename(sparks.path("new"), &file).unwrap();
    assert_eq!(next(&lines), all[3], "replaced");
    interrupt(tail);
    assert!(lines.recv().is_err(), "no line is printed twice");
}

#[test]
fn follow_and_last_events_go_on_when_a_worker_replaces_the_file() {
    let sparks = album();
    let file = sparks.data().join("published.jsonl");
    let before = published(&sparks);
    // Lines that are no notifications, so that the next worker replaces the file at its first notification.
    std::fs::write(&file, format!("{}{}\n", "x\n".repeat(1 << 19), before.join("\n"))).unwrap();
    let (tail, lines) = follow(&sparks, &["--json", "-n", "1"]);
    assert_eq!(&next(&lines), before.last().unwrap());
    std::fs::remove_dir_all(sparks.path("album")).unwrap();
    let photo = sparks.synth(1, 7, &["--seed", "9"]);
    let mut ingest = sparks.command(["ingest", photo.to_str().unwrap(), "--faces", "synthetic"]);
    assert!(ingest.env("SPARKS_PUBLISH_MAX_FILE_MIB", "1").output().unwrap().status.success());

    let after = published(&sparks);
    assert!(!after.is_empty() && after.iter().all(|line| !before.contains(line)), "the file was not replaced");
    for line in &after {
        assert_eq!(&next(&lines), line);
    }
    interrupt(tail);
    assert!(lines.recv().is_err(), "no line is printed twice");
    let last = sparks.text(["tail", "--json", "-n", &(before.len() + after.len()).to_string()]);
    assert_eq!(last.lines().collect::<Vec<_>>(), before.iter().chain(&after).collect::<Vec<_>>());
}

#[test]
fn a_closed_output_pipe_ends_follow() {
    let sparks = album();
    let mut tail = sparks.command(["tail", "-f", "-n", "1"]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(tail.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(!first.is_empty());
    let file = sparks.data().join("published.jsonl");
    std::fs::write(&file, "{\"eventType\":\"x\"}\n").unwrap(); // the file is written again
    let output = tail.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
