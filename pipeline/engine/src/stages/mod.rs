//! The stages of a photo. Each consumes the type the one before it made.

mod analyze;
mod announce;
mod commit;
mod delete;
mod effects;
mod fetch;
mod look_up;
mod outcome;
mod people;
mod process;
mod profile;
mod redecide;
mod render;

pub(crate) use announce::notices;
pub use commit::Committed;
pub(crate) use commit::{conflict_pauses, pause};
pub use outcome::Outcome;
