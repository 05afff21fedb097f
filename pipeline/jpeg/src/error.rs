//! Why there is no picture.

use std::{error, fmt};

/// A sentence for the person whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A kind of JPEG that nobody here can read.
    Unsupported(String),
    /// A file that is not what its writer meant it to be.
    Damaged(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unsupported(sentence) | Self::Damaged(sentence)) = self;
        formatter.write_str(sentence)
    }
}

impl error::Error for Error {}
