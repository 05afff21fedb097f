//! The fuzz target bodies over their corpus and over reproducible mutations of it.

use fastrand::Rng;
use sparks_engine::ImageProcessor;
use sparks_media::LocalImageProcessor;
use sparks_tests::fuzz_targets;

use super::{crate_path, files};

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    files(crate_path("fuzz/corpus").join(target))
}

/// Returns the file with random mutations: flipped bits, removed, random or copied bytes, truncation, and parts of another file.
fn mutate(rng: &mut Rng, file: &[u8], other: &[u8]) -> Vec<u8> {
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
                let part = file[at..at + length].to_vec();
                let to = rng.usize(..=file.len());
                drop(file.splice(to..to, part));
            }
            _ => {
                file.truncate(at);
                file.extend_from_slice(&other[rng.usize(..other.len().max(1)).min(other.len())..]);
            }
        }
    }
    file
}

/// Asserts that the body does not panic on any file of the corpus or mutation of it. A failing input is stored.
fn check(target: &str, body: fn(&[u8]), mutations: usize) {
    let corpus = corpus(target);
    for (name, file) in &corpus {
        println!("{target}: {name}");
        body(file);
    }
    let mut rng = Rng::with_seed(7);
    for mutation in 0..mutations {
        let (name, file) = rng.choice(corpus.iter()).unwrap();
        let (_, other) = rng.choice(corpus.iter()).unwrap();
        let mutated = mutate(&mut rng, file, other);
        if std::panic::catch_unwind(|| body(&mutated)).is_err() {
            let path = std::env::temp_dir().join(format!("sparks-{target}-{mutation}"));
            std::fs::write(&path, &mutated).unwrap();
            panic!("`{target}` panicked on mutation {mutation} of {name}, stored in {}", path.display());
        }
    }
}

#[test]
fn mutated_messages_cause_no_panic() {
    check("message", fuzz_targets::message, 20_000);
}

#[test]
fn mutated_exif_causes_no_panic() {
    check("exif", fuzz_targets::exif, 50_000);
}

#[test]
fn mutated_image_headers_cause_no_panic() {
    check("photo", fuzz_targets::header, 30_000);
}

#[test]
fn mutated_photos_cause_no_panic() {
    check("photo", fuzz_targets::photo, 6_000);
}

/// Files called `broken_...` are former fuzzing failures; all others can be decoded.
#[test]
fn corpus_photos_are_decoded_and_no_prefix_of_them_panics() {
    for (name, file) in corpus("photo") {
        let rendered = LocalImageProcessor::default().render(&file).map(drop);
        assert!(rendered.is_ok() || name.starts_with("broken_"), "{name}: {rendered:?}");
        for end in 0..file.len() {
            fuzz_targets::photo(&file[..end]);
            fuzz_targets::header(&file[..end]);
        }
        println!("{name}: {} prefixes", file.len());
    }
}
