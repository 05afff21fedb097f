//! A folder of arbitrary files: each is processed or rejected within the limits on time and memory.
//!
//! `SPARKS_TEST_CORPUS=/some/folder cargo test --release -p sparks-tests --test scenarios corpus -- --nocapture` processes every file
//! below it. Without it the images of the repository are processed, whole and damaged.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use fastrand::Rng;
use serde_json::Value;

use crate::{
    peak_memory::run_and_measure,
    sparks::{Sparks, root},
};

/// The memory that a file may need above that of an idle worker, in bytes.
const MAX_MEMORY: u64 = 512 << 20;
const MAX_MILLISECONDS: i64 = 10_000;

const IMAGE_FOLDERS: [&str; 4] =
    ["tests/fuzz/corpus/photo", "tests/fixtures/colour", "tests/photos", "pipeline/jpeg/tests/images"];

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

/// Returns the file truncated, blank in the middle, and with wrong bytes.
fn damaged(file: &[u8], rng: &mut Rng) -> [Vec<u8>; 3] {
    let (length, third) = (file.len(), file.len() / 3);
    let mut blank = file.to_vec();
    blank[third..third * 2].fill(0);
    let mut wrong = file.to_vec();
    for _ in 0..8.min(length) {
        wrong[rng.usize(..length)] = rng.u8(..);
    }
    [file[..third * 2].to_vec(), blank, wrong]
}

/// Copies the files under names that end in `.jpg`, so that none is ignored. Returns the origin of each copy.
fn album(into: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let (corpus, mut found, mut rng) = (std::env::var_os("SPARKS_TEST_CORPUS"), Vec::new(), Rng::with_seed(5));
    match &corpus {
        Some(folder) => files(Path::new(folder), &mut found),
        None => IMAGE_FOLDERS.iter().for_each(|folder| files(&root().join(folder), &mut found)),
    }
    found.sort();
    assert!(!found.is_empty(), "an empty folder");
    fs::create_dir(into).unwrap();
    let mut origins = BTreeMap::new();
    for origin in found {
        let whole = fs::read(&origin).unwrap();
        let changed = if corpus.is_none() { damaged(&whole, &mut rng).to_vec() } else { Vec::new() };
        for file in [vec![whole], changed].concat() {
            let copy = into.join(format!("{:06}.jpg", origins.len()));
            fs::write(&copy, file).unwrap();
            origins.insert(copy, origin.clone());
        }
    }
    origins
}

/// Processes one photo at a time, so that memory and time are those of one photo.
fn ingest(sparks: &Sparks, folder: &Path) -> (u64, Value) {
    let command = sparks.command([
        "ingest".as_ref(),
        folder.as_os_str(),
        "--faces=off".as_ref(),
        "--jobs=1".as_ref(),
        "--json".as_ref(),
    ]);
    let (peak, output) = run_and_measure(command);
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    (peak, serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns the longest time between two events, in milliseconds.
fn longest(sparks: &Sparks) -> i64 {
    let mut times: Vec<i64> = sparks.events().iter().map(|event| milliseconds(&event["when_occurred"])).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

fn milliseconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn every_file_is_settled_within_the_limits_on_time_and_memory() {
    let sparks = Sparks::new();
    let nothing = sparks.path("nothing");
    fs::create_dir(&nothing).unwrap();
    let (idle, _) = ingest(&sparks, &nothing);
    let origins = album(&sparks.path("corpus"));

    let (peak, summary) = ingest(&sparks, &sparks.path("corpus"));
    let rejected = summary["rejected"].as_array().unwrap();
    for file in rejected {
        let (path, reason) = (file["path"].as_str().unwrap(), file["reason"].as_str().unwrap());
        println!("{}: {reason}", origins[Path::new(path)].display());
        assert!(reason.split_whitespace().count() > 2, "{path}: {reason}");
    }
    let count = |name: &str| summary[name].as_u64().unwrap() as usize;
    let settled = count("processed") + count("duplicates") + rejected.len();
    let (above, longest) = (peak.saturating_sub(idle), longest(&sparks));
    println!(
        "{} files: {} processed, {} duplicates, {} rejected; {} MB above the {} of an idle worker; {longest} ms at most",
        origins.len(),
        count("processed"),
        count("duplicates"),
        rejected.len(),
        above >> 20,
        idle >> 20
    );
    assert_eq!((settled, &summary["failed"]), (origins.len(), &Value::Array(Vec::new())), "{summary}");
    assert!(idle > 1 << 20 && above < MAX_MEMORY, "{above} bytes above {idle}");
    assert!(longest < MAX_MILLISECONDS, "{longest} ms");
}
