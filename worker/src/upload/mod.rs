//! Uploading a file, as the platform does: an original, a row and a message.

mod contents;
mod uploader;

pub use contents::Contents;
pub use uploader::{Receipt, Submitted, Uploader};
