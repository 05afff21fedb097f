//! Renders every file of a folder, good or bad: each is rendered or rejected with a message, within limits of time and memory.
//!
//! `SPARKS_TEST_CORPUS=/some/folder cargo test -p sparks-media --test corpus -- --nocapture` reads every file below that folder
//! and prints the slowest and the largest. By default the folder `images` of the test data and the repository's photos are read.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic on unexpected results")]

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sparks_engine::ImageProcessor;
use sparks_media::{Limits, LocalImageProcessor};

/// CPU time, so that other load on the machine does not matter.
const MAX_CPU_TIME: Duration = Duration::from_secs(10);
const LISTED: usize = 10;

#[derive(Debug)]
struct Trial {
    file: PathBuf,
    outcome: Result<(), String>,
    panicked: bool,
    took: Duration,
    /// Peak above the memory before, where the system reports it.
    memory: u64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("SPARKS_TEST_CORPUS") {
        let folder = PathBuf::from(folder);
        assert!(folder.is_dir(), "SPARKS_TEST_CORPUS is not a folder: {}", folder.display());
        return vec![folder];
    }
    let data = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let images = data.join("images");
    if !images.is_dir() {
        println!("skipped: {} does not exist; set SPARKS_TEST_CORPUS to a folder of files", images.display());
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

/// Reads a line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// Returns the CPU time of this thread, which does all the work.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn run_trial(processor: &LocalImageProcessor, file: PathBuf) -> Trial {
    // Resets the peak resident set size.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS");
    let bytes = fs::read(&file).unwrap();
    let start = cpu_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        processor.inspect(&bytes);
        processor.dimensions(&bytes);
        processor.render(&bytes).map(drop).map_err(|error| error.to_string())
    }));
    let took = cpu_time().saturating_sub(start);
    let memory = status("VmHWM").saturating_sub(before);
    let panicked = outcome.is_err();
    Trial { file, outcome: outcome.unwrap_or_else(|_| Err("panic".into())), panicked, took, memory }
}

fn print_summary(trials: &mut [Trial]) {
    let accepted = trials.iter().filter(|trial| trial.outcome.is_ok()).count();
    println!("{accepted} of {} files accepted; reasons of the others:", trials.len());
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
    for trial in trials.iter().take(LISTED) {
        println!("{:6} ms  {}", trial.took.as_millis(), trial.file.display());
    }
    println!("largest:");
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.memory));
    for trial in trials.iter().take(LISTED) {
        println!("{:6} MB  {}", trial.memory >> 20, trial.file.display());
    }
}

#[test]
fn every_file_is_rendered_or_rejected_within_limits() {
    let mut found = Vec::new();
    folders().iter().for_each(|folder| files(folder, &mut found));
    found.sort();
    assert!(!found.is_empty());
    // The settings of a worker, including encoding.
    let processor = LocalImageProcessor::default();
    let mut trials: Vec<_> = found.into_iter().map(|file| run_trial(&processor, file)).collect();
    print_summary(&mut trials);
    let max_memory = Limits::default().max_memory;
    let bad: Vec<_> = trials
        .iter()
        .filter(|trial| {
            let has_no_message = trial.outcome.as_ref().is_err_and(|reason| reason.trim().is_empty());
            trial.panicked || has_no_message || trial.took > MAX_CPU_TIME || trial.memory > max_memory
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
