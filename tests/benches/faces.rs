//! What faces cost: `cargo bench -p sparks-tests --bench faces`.
//!
//! Everything that is compared is measured in turns in one run, in CPU where it can be, because machines are noisy.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on says so by panicking")]

#[path = "faces/compare.rs"]
mod compare;
#[path = "faces/gallery.rs"]
mod gallery;
#[path = "faces/photo.rs"]
mod photo;
#[path = "faces/share.rs"]
mod share;

use sparks_engine::FaceEngine;
use sparks_faces::{Local, LocalOptions};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, looks] = args.as_slice()
        && mode == share::CHILD
    {
        return share::look(&engine(), looks.parse().unwrap());
    }
    // `cargo bench` passes --bench; `cargo test --benches` asks for no more than that it runs.
    let rounds = if args.iter().any(|arg| arg == "--test") { 1 } else { 12 };
    let engine = engine();
    assert_eq!(engine.look(&photo::portrait()).len(), 1, "one face in the portrait");
    compare::faces_and_webp(&engine, rounds);
    compare::further_faces(&engine, rounds);
    share::threads_and_processes(&engine, rounds);
    gallery::search(rounds);
    gallery::load(if rounds == 1 { 2_000 } else { 100_000 });
}

fn engine() -> Local {
    Local::load(LocalOptions { mirror: false, ..LocalOptions::default() }).unwrap()
}
