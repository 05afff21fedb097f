//! The files that somebody means by a path.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use sparks_engine::Darkroom;
use walkdir::WalkDir;

/// What there is to take in.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Files that are photos, or are called so; sorted, so that the same folder is taken in in the same order.
    pub files: Vec<PathBuf>,
    /// What could not be looked at, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Files that neither are photos nor claim to be.
    pub ignored: u64,
}

/// Endings that claim to be a photo. What is inside decides later; a wrong claim is rejected by name, not passed over.
const CLAIMS: [&str; 14] =
    ["jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "heic", "heif", "avif", "tif", "tiff", "bmp", "dng"];

/// Looks through the paths. A file that is named is always meant; in a folder, only what is or claims to be a photo.
/// `spared` is the data folder: our own pictures are nobody's originals.
pub fn discover(paths: &[PathBuf], spared: &Path, darkroom: &dyn Darkroom) -> Discovery {
    let mut found = Discovery::default();
    for path in paths {
        if path.is_dir() {
            walk(path, spared, darkroom, &mut found);
        } else {
            found.files.push(path.clone());
        }
    }
    found
}

fn walk(folder: &Path, spared: &Path, darkroom: &dyn Darkroom, found: &mut Discovery) {
    let hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let spared = |path: &Path| path.is_dir() && path.canonicalize().is_ok_and(|path| path == spared);
    let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    let walk = walk.filter_entry(|entry| entry.depth() == 0 || !(hidden(entry.file_name()) || spared(entry.path())));
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) if claims_to_be_photo(entry.path()) || is_photo(entry.path(), darkroom) => {
                found.files.push(entry.into_path());
            }
            Ok(_) => found.ignored += 1,
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                found.unreadable.push((path, reason));
            }
        }
    }
}

fn claims_to_be_photo(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| CLAIMS.contains(&ending.to_lowercase().as_str()))
}

fn is_photo(path: &Path, darkroom: &dyn Darkroom) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && darkroom.describe(&start).mime_type.is_some()
}
