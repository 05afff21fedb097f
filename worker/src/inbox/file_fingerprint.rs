//! Detects changes of a file without reading it.

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
    time::SystemTime,
};

/// Size, modification time and identity of a file at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileFingerprint {
    /// The size.
    pub bytes: u64,
    modified: Option<SystemTime>,
    /// The identity of the file, independent of its name.
    pub id: Option<FileId>,
}

/// Device and inode, where the system has them.
pub(super) type FileId = (u64, u64);

impl FileFingerprint {
    /// Returns the fingerprint of a regular file; `None` for links, pipes and sockets.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let fingerprint = Self { bytes: metadata.len(), modified: metadata.modified().ok(), id: file_id(metadata) };
        metadata.is_file().then_some(fingerprint)
    }

    /// Returns the fingerprint of the file at this path, if there is one.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Self::of(&metadata)),
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(unix)]
pub(super) fn file_id(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn file_id(_: &Metadata) -> Option<FileId> {
    None
}
