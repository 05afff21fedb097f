//! Exit codes, settings, help, and the first command of the README.

use std::process::Stdio;

use crate::sparks::{Sparks, root};

#[test]
fn the_readme_command_works() {
    let sparks = Sparks::new();
    let text = sparks.text(["ingest", root().join("tests/photos").to_str().unwrap()]);
    assert!(text.starts_with("5 photos in "), "{text}");
    assert!(text.contains("processed      5"), "{text}");
    assert!(text.contains("persons new    3"), "{text}");
    let again = sparks.json(["ingest", root().join("tests/photos").to_str().unwrap()]);
    assert_eq!(again["duplicates"], 5);
    for key in
        ["photos", "processed", "duplicates", "rejected", "failed", "faces", "persons_new", "persons_known", "seconds"]
    {
        assert!(again.get(key).is_some(), "{key}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2_and_names_the_remedy() {
    let sparks = Sparks::new();
    let check = |args: &[&str], expected: &str| {
        let output = sparks.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
        assert!(!sparks.data().exists(), "{args:?} created a data folder");
    };
    check(&["ingest"], "Usage");
    check(&["ingest", "no-such-folder"], "no such file or folder");
    check(&["ingest", ".", "--uploader", "not-an-address"], "e-mail address");
    check(&["ingest", ".", "--jobs", "0"], "--jobs");
    check(&["ingest", ".", "--faces", "nonsense"], "synthetic");
    check(&["items"], "sparks ingest");
    check(&["--config", "missing.toml", "config", "check"], "missing.toml");
    check(&["nonsense"], "Usage");
}

#[test]
fn environment_variables_override_the_settings_file() {
    let sparks = Sparks::new();
    std::fs::write(sparks.path("my.toml"), "jobs = 3\n[variants.large]\nquality = 50\n").unwrap();
    let mut command = sparks.command(["--config", "my.toml", "config", "show", "--json"]);
    let output = command.env("SPARKS_VARIANTS_LARGE_QUALITY", "60").output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["jobs"]["value"], 3);
    assert_eq!(shown["variants.large.quality"]["value"], 60.0, "the environment variable wins");
    assert_eq!(shown["variants.medium.quality"]["value"], 85.0);
    assert!(shown["data"]["origin"].as_str().unwrap().contains("--data"));

    std::fs::write(sparks.path("typo.toml"), "[limits]\nmax_byte = 1\n").unwrap();
    let wrong = sparks.run(["--config", "typo.toml", "config", "check"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("limits.max_bytes"), "names the nearest key");
}

#[test]
fn deprecated_settings_are_accepted_with_one_warning_each() {
    let sparks = Sparks::new();
    std::fs::write(sparks.path("old.toml"), "[queue]\nmax_receives = 3\n").unwrap();
    let mut command = sparks.command(["--config", "old.toml", "config", "show", "--json"]);
    let output = command.env("SPARKS_DARKROOM_ISOLATE", "false").output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["queue.max_attempts"]["value"], &shown["decoder.isolate"]["value"]), (&3.into(), &false.into()));
    assert!(shown.get("queue.max_receives").is_none(), "{shown}");
    let log = String::from_utf8_lossy(&output.stderr);
    for warning in [
        "setting queue.max_receives is deprecated; use queue.max_attempts",
        "setting SPARKS_DARKROOM_ISOLATE is deprecated; use SPARKS_DECODER_ISOLATE",
    ] {
        assert_eq!(log.matches(warning).count(), 1, "{log}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let sparks = Sparks::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(sparks.text(["completions", shell]).contains("ingest"), "{shell}");
    }
    for command in [
        &["--help"][..],
        &["ingest", "--help"],
        &["query", "--help"],
        &["synth", "--help"],
        &["send", "--help"],
        &["dlq", "--help"],
        &["dlq", "replay", "--help"],
        &["backfill", "--help"],
        &["adopt", "--help"],
        &["tail", "--help"],
        &["rekognition-server", "--help"],
        &["photo", "delete", "--help"],
        &["persons", "--help"],
        &["explain", "--help"],
        &["faces", "eval", "--help"],
        &["doctor", "--help"],
    ] {
        assert!(sparks.text(command).contains("Example"), "{command:?}");
    }
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let sparks = Sparks::new();
    let album = sparks.synth(3, 2, &[]);
    sparks.json(["ingest", album.to_str().unwrap(), "--faces", "synthetic"]);
    let mut items = sparks.command(["items"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(items.stdout.take());
    let output = items.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_same_seed_gives_the_same_album() {
    let (a, b) = (Sparks::new(), Sparks::new());
    let (first, second) = (a.synth(3, 2, &["--seed", "5"]), b.synth(3, 2, &["--seed", "5"]));
    for file in ["photo-0001.jpg", "photo-0003.jpg", "truth.json"] {
        assert_eq!(std::fs::read(first.join(file)).unwrap(), std::fs::read(second.join(file)).unwrap(), "{file}");
    }
}
