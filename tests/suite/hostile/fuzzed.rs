//! The bodies of the fuzz targets over their corpus, and over changes of it that are the same every time.

use fastrand::Rng;
use sparks_engine::Darkroom;
use sparks_media::Lab;
use sparks_tests::fuzzed;

use super::{files, own};

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    files(own("fuzz/corpus").join(target))
}

/// One of the things that happen to files: bits flip, bytes go, come, or are copied from elsewhere; two files grow together.
fn changed(rng: &mut Rng, file: &[u8], other: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..rng.usize(1..=4) {
        if file.is_empty() {
            break;
        }
        let at = rng.usize(..file.len());
        let length = rng.usize(1..=32).min(file.len() - at);
        match rng.u8(..7) {
            0 => file[at] ^= 1 << rng.u8(..8),
            1 => file[at] = *rng.choice([0, 1, 0x7f, 0x80, 0xfe, 0xff].iter()).unwrap(),
            2 => drop(file.drain(at..at + length)),
            3 => file.truncate(at),
            4 => (at..at + length).for_each(|at| file[at] = rng.u8(..)),
            5 => {
                let piece = file[at..at + length].to_vec();
                let to = rng.usize(..=file.len());
                drop(file.splice(to..to, piece));
            }
            _ => {
                file.truncate(at);
                file.extend_from_slice(&other[rng.usize(..other.len().max(1)).min(other.len())..]);
            }
        }
    }
    file
}

/// How the body reacts is its own affair; here it only must not panic, and the name of what made it do so is printed.
fn try_changes(target: &str, body: fn(&[u8]), changes: usize) {
    let corpus = corpus(target);
    for (name, file) in &corpus {
        println!("{target}: {name}");
        body(file);
    }
    let mut rng = Rng::with_seed(7);
    for change in 0..changes {
        let (name, file) = rng.choice(corpus.iter()).unwrap();
        let (_, other) = rng.choice(corpus.iter()).unwrap();
        let changed = changed(&mut rng, file, other);
        if std::panic::catch_unwind(|| body(&changed)).is_err() {
            let kept = std::env::temp_dir().join(format!("sparks-{target}-{change}"));
            std::fs::write(&kept, &changed).unwrap();
            panic!("change {change} of {name} is too much for `{target}`; it is in {}", kept.display());
        }
    }
}

#[test]
fn messages() {
    try_changes("message", fuzzed::message, 20_000);
}

#[test]
fn exif() {
    try_changes("exif", fuzzed::exif, 50_000);
}

#[test]
fn headers() {
    try_changes("photo", fuzzed::header, 30_000);
}

#[test]
fn photos() {
    try_changes("photo", fuzzed::photo, 6_000);
}

/// What fuzzing found is in files called `broken_...`; all others are pictures, and stay so.
#[test]
fn every_picture_of_the_corpus_is_good_and_no_beginning_is_too_much() {
    for (name, file) in corpus("photo") {
        let developed = Lab::default().develop(&file).map(drop);
        assert!(developed.is_ok() || name.starts_with("broken_"), "{name}: {developed:?}");
        for end in 0..file.len() {
            fuzzed::photo(&file[..end]);
            fuzzed::header(&file[..end]);
        }
        println!("{name}: {} beginnings", file.len());
    }
}
