//! Taking a folder in: what files there are, what becomes of each, and what to tell about it.

mod album;
mod discover;
mod submit;
mod summary;

pub use album::{Album, Photo};
pub use discover::discover;
pub use submit::Submitter;
pub use summary::Summary;
