//! Finds labelled photos in a folder.

use std::path::{Path, PathBuf};

use sparks_engine::ImageProcessor;

use crate::{ingest::discover, wiring::UsageError};

/// A photo with the number of the labelled person.
#[derive(Debug, Clone)]
pub struct LabelledPhoto {
    /// The file.
    pub path: PathBuf,
    /// The number of the person.
    pub label: usize,
}

/// Finds the photos in `folder`, which holds one folder per person. Returns them with the number of persons.
pub fn find_labelled_photos(
    folder: &Path,
    image_processor: &dyn ImageProcessor,
) -> anyhow::Result<(Vec<LabelledPhoto>, usize)> {
    let invalid = |reason: &str| UsageError(format!("{}: {reason}", folder.display()));
    let entries = folder.read_dir().map_err(|error| invalid(&error.to_string()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    let (mut photos, mut persons) = (Vec::new(), 0);
    for folder in folders {
        let mut files = discover(&[folder], Path::new(""), image_processor).files;
        files.sort();
        photos.extend(files.iter().map(|path| LabelledPhoto { path: path.clone(), label: persons }));
        persons += usize::from(!files.is_empty());
    }
    if persons < 2 {
        return Err(invalid("expected one folder of photos for each of at least two persons").into());
    }
    Ok((photos, persons))
}
