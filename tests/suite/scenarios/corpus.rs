//! Any folder of files, good or bad, through the real worker: every file is settled, in time and within its memory.
//!
//! `SPARKS_TEST_CORPUS=/some/folder cargo test --release -p sparks-tests --test scenarios corpus -- --nocapture` takes every file
//! below it. Without it the project's own pictures are taken, whole and damaged.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use fastrand::Rng;
use serde_json::Value;

use crate::{
    sparks::{Sparks, root},
    watched::run_watched,
};

/// What a file may take above a worker that has nothing to do.
const MOST_MEMORY: u64 = 512 << 20;
const MOST_MILLISECONDS: i64 = 10_000;

const OWN: [&str; 4] =
    ["tests/fuzz/corpus/photo", "tests/fixtures/colour", "tests/photos", "pipeline/jpeg/tests/pictures"];

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

/// Cut off, blank in the middle, with wrong bytes.
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

/// Copies with endings that claim to be photos, or the worker would pass over what is none; each with where it is from.
fn album(into: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let (corpus, mut found, mut rng) = (std::env::var_os("SPARKS_TEST_CORPUS"), Vec::new(), Rng::with_seed(5));
    match &corpus {
        Some(folder) => files(Path::new(folder), &mut found),
        None => OWN.iter().for_each(|folder| files(&root().join(folder), &mut found)),
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

/// One photo at a time, so that what is taken is taken by one.
fn ingest(sparks: &Sparks, folder: &Path) -> (u64, Value) {
    let command = sparks.command([
        "ingest".as_ref(),
        folder.as_os_str(),
        "--faces=off".as_ref(),
        "--jobs=1".as_ref(),
        "--json".as_ref(),
    ]);
    let (peak, output) = run_watched(command);
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    (peak, serde_json::from_slice(&output.stdout).unwrap())
}

/// The most milliseconds between two decisions.
fn longest(sparks: &Sparks) -> i64 {
    let mut times: Vec<i64> = sparks.events().iter().map(|event| milliseconds(&event["when_occurred"])).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

fn milliseconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn every_file_is_settled_in_time_and_within_its_memory() {
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
        "{} files: {} processed, {} the same as others, {} rejected; {} MB above an idle worker's {}; {longest} ms the longest",
        origins.len(),
        count("processed"),
        count("duplicates"),
        rejected.len(),
        above >> 20,
        idle >> 20
    );
    assert_eq!((settled, &summary["failed"]), (origins.len(), &Value::Array(Vec::new())), "{summary}");
    assert!(idle > 1 << 20 && above < MOST_MEMORY, "{above} bytes above {idle}");
    assert!(longest < MOST_MILLISECONDS, "{longest} ms");
}
