//! Cost of face analysis: `cargo bench -p sparks-tests --bench faces`.
//!
//! Everything that is compared is measured alternately in one run, in CPU time where possible, because machines are noisy.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap ends the benchmark")]

#[path = "faces/compare.rs"]
mod compare;
#[path = "faces/gallery.rs"]
mod gallery;
#[path = "faces/parallel.rs"]
mod parallel;
#[path = "faces/photo.rs"]
mod photo;

use sparks_engine::FaceEngine;
use sparks_faces::{LocalEngine, LocalOptions};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, count] = args.as_slice()
        && mode == parallel::CHILD
    {
        return parallel::analyze(&engine(), count.parse().unwrap());
    }
    // `cargo bench` passes --bench; `cargo test --benches` passes --test and only checks that it runs.
    let rounds = if args.iter().any(|arg| arg == "--test") { 1 } else { 12 };
    let engine = engine();
    assert_eq!(engine.analyze(&photo::portrait()).len(), 1, "one face in the portrait");
    compare::faces_and_webp(&engine, rounds);
    compare::further_faces(&engine, rounds);
    parallel::threads_and_processes(&engine, rounds);
    gallery::search(rounds);
    gallery::load(if rounds == 1 { 2_000 } else { 100_000 });
}

fn engine() -> LocalEngine {
    LocalEngine::load(LocalOptions { mirror: false, ..LocalOptions::default() }).unwrap()
}
