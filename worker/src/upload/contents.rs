//! What is in a file.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

/// What a file holds, as far as we care to read.
pub enum Contents {
    /// All of it.
    Bytes(Vec<u8>),
    /// More than we take.
    TooMany {
        /// How many.
        bytes: u64,
        /// What tells it from other files.
        hash: [u8; 32],
    },
}

impl Contents {
    /// Reads a file of at most so many bytes; of a larger one only the hash.
    pub fn read(path: &Path, max_bytes: u64) -> io::Result<Self> {
        Self::read_open(&mut File::open(path)?, max_bytes)
    }

    /// Reads a file that is open, and stands at its start.
    pub fn read_open(file: &mut File, max_bytes: u64) -> io::Result<Self> {
        let size = file.metadata()?.len();
        if size > max_bytes {
            let mut digest = Sha256::new();
            let mut chunk = vec![0; 1 << 20];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(Self::TooMany { bytes: size, hash: digest.finalize().into() }),
                    n => digest.update(&chunk[..n]),
                }
            }
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(Self::Bytes(bytes))
    }
}
