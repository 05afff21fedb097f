//! `sparks ingest`: finds files, uploads them and summarizes the results.

mod batch;
mod discover;
mod submit;
mod summary;

pub use batch::{IngestBatch, IngestedPhoto};
pub use discover::discover;
pub use submit::submit_files;
pub use summary::IngestSummary;
