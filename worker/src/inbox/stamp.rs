//! What tells whether a file has changed.

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
    time::SystemTime,
};

/// A file as it stood at one moment, by what can be asked without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Its size.
    pub bytes: u64,
    modified: Option<SystemTime>,
    /// Which file it is, under whatever name.
    pub id: Option<FileId>,
}

/// A device and a file on it, where the system has such numbers.
pub(super) type FileId = (u64, u64);

impl Stamp {
    /// The stamp of what is really a file: no link, no pipe, no socket.
    pub fn of(about: &Metadata) -> Option<Self> {
        let stamp = Self { bytes: about.len(), modified: about.modified().ok(), id: file_id(about) };
        about.is_file().then_some(stamp)
    }

    /// The stamp of the file at this path, if there is one.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(about) => Ok(Self::of(&about)),
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(unix)]
pub(super) fn file_id(about: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(super) fn file_id(_: &Metadata) -> Option<FileId> {
    None
}
