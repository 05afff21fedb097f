//! Scans the inbox for files.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use walkdir::{DirEntry, WalkDir};

use super::{file_fingerprint::FileFingerprint, output_folders};

/// The files in the inbox.
#[derive(Debug, Default)]
pub(super) struct FolderScan {
    /// Candidates for an upload, sorted by name.
    pub files: Vec<(PathBuf, FileFingerprint)>,
    /// Files and folders that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Suffixes that programs give to unfinished files.
const UNFINISHED_SUFFIXES: [&str; 5] = [".part", ".tmp", ".crdownload", ".filepart", "~"];

impl FolderScan {
    /// Scans the inbox except for the output folders. Does not follow links, which may lead anywhere.
    pub fn of(folder: &Path) -> Self {
        let mut scan = Self::default();
        let entries = WalkDir::new(folder).min_depth(1).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| !is_hidden(entry.file_name()) && !is_output_folder(entry)) {
            let found = entry.and_then(|entry| {
                let is_candidate = entry.file_type().is_file() && !is_unfinished(entry.file_name());
                let fingerprint = if is_candidate { FileFingerprint::of(&entry.metadata()?) } else { None };
                Ok(fingerprint.map(|fingerprint| (entry.into_path(), fingerprint)))
            });
            match found {
                Ok(file) => scan.files.extend(file),
                Err(error) => scan.add_unreadable(folder, &error),
            }
        }
        scan
    }

    fn add_unreadable(&mut self, folder: &Path, error: &walkdir::Error) {
        let io = error.io_error();
        // Ignores files removed since their folder was read.
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

fn is_output_folder(entry: &DirEntry) -> bool {
    entry.depth() == 1 && output_folders::NAMES.iter().any(|name| entry.file_name() == *name)
}

fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    UNFINISHED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hidden_unfinished_and_special_files_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("private.jpg"), "x").unwrap();
        for sub in ["done", "rejected", "a/done", ".sync"] {
            fs::create_dir_all(folder.path().join(sub)).unwrap();
            fs::write(folder.path().join(sub).join("in.jpg"), "x").unwrap();
        }
        let skipped = [".hidden.jpg", "a.jpg.part", "b.TMP", "c.crdownload", "d.filepart", "e.jpg~"];
        for name in skipped.iter().chain(&["z.jpg", "b.dat"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::{fs::symlink, net::UnixListener};
            symlink(elsewhere.path(), folder.path().join("link")).unwrap();
            symlink(elsewhere.path().join("private.jpg"), folder.path().join("link.jpg")).unwrap();
            let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        }
        let scan = FolderScan::of(folder.path());
        let found: Vec<_> = scan.files.iter().map(|(path, _)| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(found, ["a/done/in.jpg", "b.dat", "z.jpg"].map(Path::new));
        assert!(scan.unreadable.is_empty(), "{:?}", scan.unreadable);
    }
}
