//! The stages of a request. `process.rs` runs those of a photo; each consumes the type that the one before it returns.

mod analyze;
mod commit;
mod contention;
mod crop_choice;
mod delete;
mod earlier_versions;
mod effects;
mod fetch;
mod images;
mod look_up;
mod notify;
mod outcome;
mod person_lifecycle;
mod person_photos;
mod process;
mod profile;
mod render;
mod reprocess;
mod table;

pub use commit::CommitReceipt;
pub(crate) use commit::{conflict_backoff, wait_after_conflict};
pub(crate) use contention::AllocationContention;
pub(crate) use delete::PhotoDeletion;
pub(crate) use images::{Images, StoredImage};
pub(crate) use notify::Notifier;
pub use outcome::Outcome;
pub(crate) use person_lifecycle::PersonLifecycle;
pub(crate) use process::PhotoProcessor;
pub(crate) use profile::ProfileProcessor;
pub(crate) use reprocess::{RedecidedCommit, Reprocessor};
