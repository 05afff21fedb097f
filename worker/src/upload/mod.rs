//! Uploads a file as the platform does: an original, a row and a message.

mod file_contents;
mod uploader;

pub use file_contents::FileContents;
pub use uploader::{UploadResult, UploadStatus, Uploader};
