//! Errors of the decoder.

use std::{error, fmt};

/// A decoder error. The message is shown to the uploader of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A kind of JPEG that is not supported.
    Unsupported(String),
    /// A damaged or truncated file.
    Damaged(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unsupported(message) | Self::Damaged(message)) = self;
        formatter.write_str(message)
    }
}

impl error::Error for Error {}
