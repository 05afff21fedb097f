//! Photos of which somebody knows who is in them.

use std::path::{Path, PathBuf};

use sparks_engine::Darkroom;

use crate::{ingest::discover, wiring::WrongUse};

/// A photo, and the name of the folder it is in.
#[derive(Debug, Clone)]
pub struct LabelledPhoto {
    /// The file.
    pub path: PathBuf,
    /// The number of the person who is shown.
    pub person: usize,
}

/// The photos under `folder`, which holds a folder for each person; and how many persons there are.
pub fn find(folder: &Path, darkroom: &dyn Darkroom) -> anyhow::Result<(Vec<LabelledPhoto>, usize)> {
    let wrong = |what: &str| WrongUse(format!("{}: {what}", folder.display()));
    let entries = folder.read_dir().map_err(|error| wrong(&error.to_string()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    let (mut photos, mut persons) = (Vec::new(), 0);
    for folder in folders {
        let mut files = discover(&[folder], Path::new(""), darkroom).files;
        files.sort();
        photos.extend(files.iter().map(|path| LabelledPhoto { path: path.clone(), person: persons }));
        persons += usize::from(!files.is_empty());
    }
    if persons < 2 {
        return Err(wrong("expected a folder for each of at least two persons, with photos of them").into());
    }
    Ok((photos, persons))
}
