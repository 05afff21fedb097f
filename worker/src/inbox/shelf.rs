//! Where files go that are done with.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use super::stamp::Stamp;

/// The folders at the top of the inbox that are ours.
pub(super) const NAMES: [&str; 2] = [DONE, REJECTED];
const DONE: &str = "done";
const REJECTED: &str = "rejected";

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its photo is in the table.
    Done,
    /// It cannot be taken, for this reason.
    Rejected(String),
}

/// The folders for files that are done with, in the order of the inbox itself.
#[derive(Debug)]
pub(super) struct Shelf {
    inbox: PathBuf,
}

impl Shelf {
    /// The shelf of this inbox.
    pub fn new(inbox: PathBuf) -> Self {
        Self { inbox }
    }

    /// Makes the folders, and the inbox with them.
    pub fn prepare(&self) -> io::Result<()> {
        NAMES.iter().try_for_each(|name| fs::create_dir_all(self.inbox.join(name)))
    }

    /// Moves the file, if it is still the one that was read; says where it stands now. Renames only, so that a file is always
    /// in one place, and replaces nothing.
    pub fn put(&self, path: &Path, stamp: Stamp, fate: &Fate) -> io::Result<Option<PathBuf>> {
        if Stamp::at(path)? != Some(stamp) {
            return Ok(None);
        }
        let (top, reason) = match fate {
            Fate::Done => (DONE, None),
            Fate::Rejected(reason) => (REJECTED, Some(reason)),
        };
        let to = self.free_place(top, path)?;
        let beside = reason.map(|reason| (reason_of(&to), reason));
        if let Some((beside, reason)) = &beside {
            fs::write(beside, format!("{reason}\n"))?;
        }
        match fs::rename(path, &to) {
            Ok(()) => Ok(Some(to)),
            Err(error) => {
                if let Some((beside, _)) = beside {
                    let _ = fs::remove_file(beside);
                }
                if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
            }
        }
    }

    /// A place that nothing has, nor its reason.
    fn free_place(&self, top: &str, path: &Path) -> io::Result<PathBuf> {
        let top = self.inbox.join(top);
        fs::create_dir_all(&top)?;
        let below = path.strip_prefix(&self.inbox).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        let folder = top.join(below);
        // Where a file has the name of the folder, the top must do.
        let folder = if fs::create_dir_all(&folder).is_ok() { folder } else { top };
        let mut number = 0;
        loop {
            let place = folder.join(numbered(path.file_name().unwrap_or_default(), number));
            let is_free = |path: &Path| match fs::symlink_metadata(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(error) => Err(error),
                Ok(_) => Ok(false),
            };
            if is_free(&place)? && is_free(&reason_of(&place))? {
                return Ok(place);
            }
            number += 1;
        }
    }
}

fn reason_of(place: &Path) -> PathBuf {
    let mut path = place.as_os_str().to_owned();
    path.push(".reason.txt");
    path.into()
}

/// The name with a number before its ending, short enough to get one and a reason beside it.
fn numbered(name: &OsStr, number: u32) -> OsString {
    const LONGEST: usize = 230;
    const LONGEST_ENDING: usize = 16;
    let whole = Path::new(name);
    let (stem, ending) = match whole.extension().filter(|ending| ending.len() <= LONGEST_ENDING) {
        Some(ending) => (whole.file_stem().unwrap_or(name), Some(ending)),
        None => (name, None),
    };
    let mut numbered = stem.to_owned();
    if name.len() > LONGEST {
        let readable = stem.to_string_lossy();
        numbered = readable[..readable.floor_char_boundary(LONGEST - LONGEST_ENDING)].into();
    }
    if number > 0 {
        numbered.push(format!("-{number}"));
    }
    if let Some(ending) = ending {
        numbered.push(".");
        numbered.push(ending);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a file of this name with this text onto the shelf; says where it came to stand, below the inbox.
    fn put(inbox: &Path, name: &str, text: &str, fate: &Fate) -> PathBuf {
        let path = inbox.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let shelf = Shelf::new(inbox.to_owned());
        let to = shelf.put(&path, Stamp::at(&path).unwrap().unwrap(), fate).unwrap().expect("moved");
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(&to).unwrap(), text);
        to.strip_prefix(inbox).unwrap().to_owned()
    }

    #[test]
    fn names_that_are_taken_are_numbered() {
        let inbox = tempfile::tempdir().unwrap();
        let done = |name: &str, text: &str| put(inbox.path(), name, text, &Fate::Done);
        assert_eq!(done("a/b.jpg", "1"), Path::new("done/a/b.jpg"));
        assert_eq!(done("a/b.jpg", "2"), Path::new("done/a/b-1.jpg"));
        assert_eq!(done("a/b.jpg", "3"), Path::new("done/a/b-2.jpg"));
        assert_eq!(done("b.jpg", "4"), Path::new("done/b.jpg"));
        assert_eq!(done("photo", "5"), Path::new("done/photo"));
        assert_eq!(done("photo", "6"), Path::new("done/photo-1"));
        assert_eq!(fs::read_to_string(inbox.path().join("done/a/b.jpg")).unwrap(), "1", "nothing is replaced");
        assert_eq!(done("photo-1.d/x.jpg", "7"), Path::new("done/photo-1.d/x.jpg"));
        fs::remove_dir(inbox.path().join("a")).unwrap();
        assert_eq!(done("photo/x.jpg", "8"), Path::new("done/x.jpg"), "a file is where the folder would be");
    }

    #[test]
    fn a_rejected_file_has_its_reason_beside_it() {
        let inbox = tempfile::tempdir().unwrap();
        let fate = |reason: &str| Fate::Rejected(reason.into());
        let reason = |name: &str| fs::read_to_string(inbox.path().join("rejected").join(name)).unwrap();
        assert_eq!(put(inbox.path(), "b.jpg", "1", &fate("too dark")), Path::new("rejected/b.jpg"));
        assert_eq!(put(inbox.path(), "b.jpg", "2", &fate("too bright")), Path::new("rejected/b-1.jpg"));
        assert_eq!(reason("b.jpg.reason.txt"), "too dark\n");
        assert_eq!(reason("b-1.jpg.reason.txt"), "too bright\n");
        // A file that is called like a reason stays what it is.
        put(inbox.path(), "c.jpg.reason.txt", "mine", &fate("a text"));
        assert_eq!(put(inbox.path(), "c.jpg", "3", &fate("too small")), Path::new("rejected/c-1.jpg"));
        assert_eq!(reason("c.jpg.reason.txt"), "mine");
    }

    #[test]
    fn long_names_leave_room_for_the_reason() {
        let inbox = tempfile::tempdir().unwrap();
        let name = format!("{}.jpg", "\u{e9}".repeat(125));
        let fate = Fate::Rejected("too long".into());
        let first = put(inbox.path(), &name, "1", &fate);
        assert!(first.to_string_lossy().ends_with("\u{e9}.jpg"), "{}", first.display());
        put(inbox.path(), &name, "2", &fate);
        let odd = format!("a.{}", "x".repeat(250));
        put(inbox.path(), &odd, "3", &fate);
    }

    #[test]
    fn a_file_that_changed_or_vanished_stays() {
        let inbox = tempfile::tempdir().unwrap();
        let (path, shelf) = (inbox.path().join("a.jpg"), Shelf::new(inbox.path().to_owned()));
        fs::write(&path, "1").unwrap();
        let stamp = Stamp::at(&path).unwrap().unwrap();
        fs::write(&path, "12").unwrap();
        assert_eq!(shelf.put(&path, stamp, &Fate::Done).unwrap(), None);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        assert_eq!(shelf.put(&path, stamp, &Fate::Rejected("gone".into())).unwrap(), None);
        assert!(!inbox.path().join("rejected/a.jpg.reason.txt").exists());
    }
}
