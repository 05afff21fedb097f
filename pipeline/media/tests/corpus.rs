//! Any folder of files, good or bad: each is developed or refused with a sentence, within bounds.
//!
//! `SPARKS_TEST_CORPUS=/some/folder cargo test -p sparks-media --test corpus -- --nocapture` tries every file below it, and
//! prints what took long or much. Without it the folder `images` of the test data is tried, and the project's own photos.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that meets the unexpected may stop")]

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sparks_engine::Darkroom;
use sparks_media::{Lab, Limits};

/// Of the processor, so that it does not matter what else the machine does.
const TOO_LONG: Duration = Duration::from_secs(10);
const SHOWN: usize = 10;

#[derive(Debug)]
struct Trial {
    file: PathBuf,
    outcome: Result<(), String>,
    panicked: bool,
    took: Duration,
    /// Above what the process had before, where the system tells.
    memory: u64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("SPARKS_TEST_CORPUS") {
        let folder = PathBuf::from(folder);
        assert!(folder.is_dir(), "SPARKS_TEST_CORPUS is no folder: {}", folder.display());
        return vec![folder];
    }
    let data = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let images = data.join("images");
    if !images.is_dir() {
        println!("not tried: there is no {}; SPARKS_TEST_CORPUS names a folder to try", images.display());
    }
    [images, root().join("tests/photos")].into_iter().filter(|folder| folder.is_dir()).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// From a line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// Of this thread, which does everything itself.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn try_out(lab: &Lab, file: PathBuf) -> Trial {
    // Lets the highest mark of memory begin anew.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS");
    let bytes = fs::read(&file).unwrap();
    let start = cpu_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        lab.describe(&bytes);
        lab.measure(&bytes);
        lab.develop(&bytes).map(drop).map_err(|error| error.to_string())
    }));
    let took = cpu_time().saturating_sub(start);
    let memory = status("VmHWM").saturating_sub(before);
    let panicked = outcome.is_err();
    Trial { file, outcome: outcome.unwrap_or_else(|_| Err("panic".into())), panicked, took, memory }
}

fn print(trials: &mut [Trial]) {
    let taken = trials.iter().filter(|trial| trial.outcome.is_ok()).count();
    println!("{taken} of {} files were taken; reasons of the others:", trials.len());
    let mut reasons = BTreeMap::<String, (usize, PathBuf)>::new();
    for trial in trials.iter() {
        let Err(reason) = &trial.outcome else { continue };
        let kind: String = reason.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        reasons.entry(kind.replace("##", "#").replace("##", "#")).or_insert((0, trial.file.clone())).0 += 1;
    }
    for (reason, (count, example)) in reasons {
        println!("{count:6}  {reason}  ({})", example.display());
    }
    println!("slowest:");
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.took));
    for trial in trials.iter().take(SHOWN) {
        println!("{:6} ms  {}", trial.took.as_millis(), trial.file.display());
    }
    println!("largest:");
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.memory));
    for trial in trials.iter().take(SHOWN) {
        println!("{:6} MB  {}", trial.memory >> 20, trial.file.display());
    }
}

#[test]
fn every_file_is_developed_or_refused_within_bounds() {
    let mut found = Vec::new();
    folders().iter().for_each(|folder| files(folder, &mut found));
    found.sort();
    assert!(!found.is_empty());
    // With the settings that a worker has: what is read is also written.
    let lab = Lab::default();
    let mut trials: Vec<_> = found.into_iter().map(|file| try_out(&lab, file)).collect();
    print(&mut trials);
    let most = Limits::default().max_memory;
    let bad: Vec<_> = trials
        .iter()
        .filter(|trial| {
            let speechless = trial.outcome.as_ref().is_err_and(|reason| reason.trim().is_empty());
            trial.panicked || speechless || trial.took > TOO_LONG || trial.memory > most
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
