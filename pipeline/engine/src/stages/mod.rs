//! The stages of a photo. Each consumes the type the one before it made.

mod analyze;
mod commit;
mod effects;
mod fetch;
mod look_up;
mod outcome;
mod process;
mod render;

pub use commit::Committed;
pub use outcome::{Failure, Outcome, settlement};
