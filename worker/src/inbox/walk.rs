//! The files in the inbox.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use walkdir::{DirEntry, WalkDir};

use super::{shelf, stamp::Stamp};

/// What stands in the inbox.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Files that may be meant for us, by name.
    pub files: Vec<(PathBuf, Stamp)>,
    /// What could not be looked at, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Endings of names that programs give to what they have not finished.
const UNFINISHED: [&str; 5] = [".part", ".tmp", ".crdownload", ".filepart", "~"];

impl Walk {
    /// Looks through the inbox, except for what was taken. Links are not followed: they may lead anywhere.
    pub fn through(folder: &Path) -> Self {
        let mut walk = Self::default();
        let entries = WalkDir::new(folder).min_depth(1).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| !is_hidden(entry.file_name()) && !is_shelf(entry)) {
            let stamped = entry.and_then(|entry| {
                let meant = entry.file_type().is_file() && !is_unfinished(entry.file_name());
                let stamp = if meant { Stamp::of(&entry.metadata()?) } else { None };
                Ok(stamp.map(|stamp| (entry.into_path(), stamp)))
            });
            match stamped {
                Ok(file) => walk.files.extend(file),
                Err(error) => walk.unreadable(folder, &error),
            }
        }
        walk
    }

    fn unreadable(&mut self, folder: &Path, error: &walkdir::Error) {
        let io = error.io_error();
        // What vanished since its folder was read needs no mention.
        if error.depth() > 0 && io.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return;
        }
        let reason = io.map_or_else(|| error.to_string(), ToString::to_string);
        self.unreadable.push((error.path().unwrap_or(folder).to_owned(), reason));
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_shelf(entry: &DirEntry) -> bool {
    entry.depth() == 1 && shelf::NAMES.iter().any(|name| entry.file_name() == *name)
}

fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    UNFINISHED.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_files_that_are_meant_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("private.jpg"), "x").unwrap();
        for sub in ["done", "rejected", "a/done", ".sync"] {
            fs::create_dir_all(folder.path().join(sub)).unwrap();
            fs::write(folder.path().join(sub).join("in.jpg"), "x").unwrap();
        }
        let left = [".hidden.jpg", "a.jpg.part", "b.TMP", "c.crdownload", "d.filepart", "e.jpg~"];
        for name in left.iter().chain(&["z.jpg", "b.dat"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::{fs::symlink, net::UnixListener};
            symlink(elsewhere.path(), folder.path().join("link")).unwrap();
            symlink(elsewhere.path().join("private.jpg"), folder.path().join("link.jpg")).unwrap();
            let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        }
        let walk = Walk::through(folder.path());
        let found: Vec<_> = walk.files.iter().map(|(path, _)| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(found, ["a/done/in.jpg", "b.dat", "z.jpg"].map(Path::new));
        assert!(walk.unreadable.is_empty(), "{:?}", walk.unreadable);
    }
}
