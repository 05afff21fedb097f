//! The folders for processed and rejected files.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use sparks_embedded::durable_files;

use super::file_fingerprint::FileFingerprint;

/// The names of the output folders, directly in the inbox.
pub(super) const NAMES: [&str; 2] = [DONE, REJECTED];
const DONE: &str = "done";
const REJECTED: &str = "rejected";

/// The result of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileResult {
    /// Its photo is processed.
    Done,
    /// It is rejected for this reason.
    Rejected(String),
}

/// The folders for processed and rejected files, with the same subfolders as the inbox.
#[derive(Debug)]
pub(super) struct OutputFolders {
    inbox: PathBuf,
}

impl OutputFolders {
    /// Returns the output folders of this inbox.
    pub fn new(inbox: PathBuf) -> Self {
        Self { inbox }
    }

    /// Creates the folders and the inbox if they are missing.
    pub fn create(&self) -> io::Result<()> {
        NAMES.iter().try_for_each(|name| durable_files::create_folders(&self.inbox.join(name)))
    }

    /// Moves the file and returns its new path; `None` if its fingerprint has changed. Uses a rename, so that the file
    /// is always in exactly one place, and never overwrites a file.
    pub fn move_file(
        &self,
        path: &Path,
        fingerprint: FileFingerprint,
        result: &FileResult,
    ) -> io::Result<Option<PathBuf>> {
        if FileFingerprint::at(path)? != Some(fingerprint) {
            return Ok(None);
        }
        let (top, reason) = match result {
            FileResult::Done => (DONE, None),
            FileResult::Rejected(reason) => (REJECTED, Some(reason)),
        };
        let to = self.free_path(top, path)?;
        let reason_file = reason.map(|reason| (reason_path(&to), reason));
        if let Some((file, reason)) = &reason_file {
            let mut file = File::create(file)?;
            file.write_all(format!("{reason}\n").as_bytes()).and_then(|()| file.sync_data())?;
        }
        match durable_files::rename(path, &to) {
            Ok(()) => Ok(Some(to)),
            Err(error) => {
                // It exists if only the sync of the folder failed.
                if let Some((file, _)) = reason_file.filter(|_| !to.exists()) {
                    let _ = fs::remove_file(file);
                }
                if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
            }
        }
    }

    /// Returns a path that is unused, as is the path of its reason file.
    fn free_path(&self, top: &str, path: &Path) -> io::Result<PathBuf> {
        let top = self.inbox.join(top);
        durable_files::create_folders(&top)?;
        let below = path.strip_prefix(&self.inbox).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        let folder = top.join(below);
        // If a file has the name of the subfolder, the top folder is used.
        let folder = if durable_files::create_folders(&folder).is_ok() { folder } else { top };
        let mut number = 0;
        loop {
            let candidate = folder.join(numbered(path.file_name().unwrap_or_default(), number));
            let is_free = |path: &Path| match fs::symlink_metadata(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(error) => Err(error),
                Ok(_) => Ok(false),
            };
            if is_free(&candidate)? && is_free(&reason_path(&candidate))? {
                return Ok(candidate);
            }
            number += 1;
        }
    }
}

fn reason_path(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".reason.txt");
    path.into()
}

/// Returns the name with a number before its extension, truncated so that the number and the suffix of the reason file
/// fit.
fn numbered(name: &OsStr, number: u32) -> OsString {
    const MAX_NAME: usize = 230;
    const MAX_EXTENSION: usize = 16;
    let whole = Path::new(name);
    let (stem, extension) = match whole.extension().filter(|extension| extension.len() <= MAX_EXTENSION) {
        Some(extension) => (whole.file_stem().unwrap_or(name), Some(extension)),
        None => (name, None),
    };
    let mut numbered = stem.to_owned();
    if name.len() > MAX_NAME {
        let readable = stem.to_string_lossy();
        numbered = readable[..readable.floor_char_boundary(MAX_NAME - MAX_EXTENSION)].into();
    }
    if number > 0 {
        numbered.push(format!("-{number}"));
    }
    if let Some(extension) = extension {
        numbered.push(".");
        numbered.push(extension);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates and moves a file. Returns its new path relative to the inbox.
    fn put(inbox: &Path, name: &str, text: &str, result: &FileResult) -> PathBuf {
        let path = inbox.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let folders = OutputFolders::new(inbox.to_owned());
        let fingerprint = FileFingerprint::at(&path).unwrap().unwrap();
        let to = folders.move_file(&path, fingerprint, result).unwrap().expect("moved");
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(&to).unwrap(), text);
        to.strip_prefix(inbox).unwrap().to_owned()
    }

    #[test]
    fn names_in_use_are_numbered() {
        let inbox = tempfile::tempdir().unwrap();
        let done = |name: &str, text: &str| put(inbox.path(), name, text, &FileResult::Done);
        assert_eq!(done("a/b.jpg", "1"), Path::new("done/a/b.jpg"));
        assert_eq!(done("a/b.jpg", "2"), Path::new("done/a/b-1.jpg"));
        assert_eq!(done("a/b.jpg", "3"), Path::new("done/a/b-2.jpg"));
        assert_eq!(done("b.jpg", "4"), Path::new("done/b.jpg"));
        assert_eq!(done("photo", "5"), Path::new("done/photo"));
        assert_eq!(done("photo", "6"), Path::new("done/photo-1"));
        assert_eq!(fs::read_to_string(inbox.path().join("done/a/b.jpg")).unwrap(), "1", "no file is overwritten");
        assert_eq!(done("photo-1.d/x.jpg", "7"), Path::new("done/photo-1.d/x.jpg"));
        fs::remove_dir(inbox.path().join("a")).unwrap();
        assert_eq!(done("photo/x.jpg", "8"), Path::new("done/x.jpg"), "a file has the name of the subfolder");
    }

    #[test]
    fn a_rejected_file_has_a_reason_file() {
        let inbox = tempfile::tempdir().unwrap();
        let rejected = |reason: &str| FileResult::Rejected(reason.into());
        let reason = |name: &str| fs::read_to_string(inbox.path().join("rejected").join(name)).unwrap();
        assert_eq!(put(inbox.path(), "b.jpg", "1", &rejected("too dark")), Path::new("rejected/b.jpg"));
        assert_eq!(put(inbox.path(), "b.jpg", "2", &rejected("too bright")), Path::new("rejected/b-1.jpg"));
        assert_eq!(reason("b.jpg.reason.txt"), "too dark\n");
        assert_eq!(reason("b-1.jpg.reason.txt"), "too bright\n");
        // A file with the name of a reason file is kept.
        put(inbox.path(), "c.jpg.reason.txt", "mine", &rejected("a text"));
        assert_eq!(put(inbox.path(), "c.jpg", "3", &rejected("too small")), Path::new("rejected/c-1.jpg"));
        assert_eq!(reason("c.jpg.reason.txt"), "mine");
    }

    #[test]
    fn long_names_leave_room_for_the_suffix_of_the_reason_file() {
        let inbox = tempfile::tempdir().unwrap();
        let name = format!("{}.jpg", "\u{e9}".repeat(125));
        let rejected = FileResult::Rejected("too long".into());
        let first = put(inbox.path(), &name, "1", &rejected);
        assert!(first.to_string_lossy().ends_with("\u{e9}.jpg"), "{}", first.display());
        put(inbox.path(), &name, "2", &rejected);
        let long_extension = format!("a.{}", "x".repeat(250));
        put(inbox.path(), &long_extension, "3", &rejected);
    }

    #[test]
    fn a_changed_or_removed_file_is_not_moved() {
        let inbox = tempfile::tempdir().unwrap();
        let (path, folders) = (inbox.path().join("a.jpg"), OutputFolders::new(inbox.path().to_owned()));
        fs::write(&path, "1").unwrap();
        let fingerprint = FileFingerprint::at(&path).unwrap().unwrap();
        fs::write(&path, "12").unwrap();
        assert_eq!(folders.move_file(&path, fingerprint, &FileResult::Done).unwrap(), None);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        assert_eq!(folders.move_file(&path, fingerprint, &FileResult::Rejected("removed".into())).unwrap(), None);
        assert!(!inbox.path().join("rejected/a.jpg.reason.txt").exists());
    }
}
