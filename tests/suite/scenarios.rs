//! The real binary, used as people use it.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on says so by panicking")]

#[path = "scenarios/bad_files.rs"]
mod bad_files;
#[path = "scenarios/biometrics.rs"]
mod biometrics;
#[path = "scenarios/by_hand.rs"]
mod by_hand;
#[path = "scenarios/command_line.rs"]
mod command_line;
#[path = "scenarios/explain.rs"]
mod explain;
#[path = "scenarios/kill.rs"]
mod kill;
#[path = "scenarios/local.rs"]
mod local;
#[path = "scenarios/persons.rs"]
mod persons;
#[path = "scenarios/questions.rs"]
mod questions;
#[path = "scenarios/replicas.rs"]
mod replicas;
#[path = "scenarios/sparks.rs"]
mod sparks;
#[path = "scenarios/truth.rs"]
mod truth;
#[path = "scenarios/twice.rs"]
mod twice;
