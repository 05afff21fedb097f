//! Finds the files to ingest.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use sparks_engine::ImageProcessor;
use walkdir::WalkDir;

/// The files found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Files that are photos by content or extension, sorted, so that the order is the same for each call.
    pub files: Vec<PathBuf>,
    /// Files and folders that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Number of files that are photos neither by content nor by extension.
    pub ignored: u64,
}

/// Extensions of photos. A file with such an extension and other content is rejected rather than ignored.
const PHOTO_EXTENSIONS: [&str; 14] =
    ["jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "heic", "heif", "avif", "tif", "tiff", "bmp", "dng"];

/// Finds the files at the paths: every named file, and in folders the files that are photos by content or extension.
/// Skips the folder `excluded`, which is the data folder with the variants.
pub fn discover(paths: &[PathBuf], excluded: &Path, image_processor: &dyn ImageProcessor) -> Discovery {
    let mut found = Discovery::default();
    for path in paths {
        if path.is_dir() {
            walk(path, excluded, image_processor, &mut found);
        } else {
            found.files.push(path.clone());
        }
    }
    found
}

fn walk(folder: &Path, excluded: &Path, image_processor: &dyn ImageProcessor, found: &mut Discovery) {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let is_excluded = |path: &Path| path.is_dir() && path.canonicalize().is_ok_and(|path| path == excluded);
    let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    let walk =
        walk.filter_entry(|entry| entry.depth() == 0 || !(is_hidden(entry.file_name()) || is_excluded(entry.path())));
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) if has_photo_extension(entry.path()) || is_photo(entry.path(), image_processor) => {
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

fn has_photo_extension(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| PHOTO_EXTENSIONS.contains(&extension.to_lowercase().as_str()))
}

fn is_photo(path: &Path, image_processor: &dyn ImageProcessor) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && image_processor.inspect(&start).mime_type.is_some()
}
