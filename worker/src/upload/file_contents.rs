//! The contents of a file, up to the size limit.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

/// The contents of a file, or the hash of a file over the size limit.
pub enum FileContents {
    /// All bytes.
    Bytes(Vec<u8>),
    /// The file is over the limit.
    TooLarge {
        /// Its size.
        bytes: u64,
        /// Its SHA-256.
        hash: [u8; 32],
    },
}

impl FileContents {
    /// Reads the file, or only hashes it if it has more than `max_bytes`.
    pub fn read(path: &Path, max_bytes: u64) -> io::Result<Self> {
        Self::read_open(&mut File::open(path)?, max_bytes)
    }

    /// Does the same with an open file, from its start.
    pub fn read_open(file: &mut File, max_bytes: u64) -> io::Result<Self> {
        let size = file.metadata()?.len();
        if size > max_bytes {
            let mut digest = Sha256::new();
            let mut chunk = vec![0; 1 << 20];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(Self::TooLarge { bytes: size, hash: digest.finalize().into() }),
                    n => digest.update(&chunk[..n]),
                }
            }
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(Self::Bytes(bytes))
    }
}
