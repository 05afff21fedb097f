//! The commands, one a file.

pub mod completions;
pub mod config;
pub mod events;
pub mod ingest;
pub mod items;
pub mod query;
pub mod rebuild;
pub mod synth;
