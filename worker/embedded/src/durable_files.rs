//! Folder entries that survive a power failure. POSIX makes a new name durable only when its folder is synced, and not every
//! file system orders it before later writes to other files.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Renames a file, replacing the target, and syncs the folder of the target. The contents must be synced before. The folder that the
/// file leaves is not synced: after a power failure the file may exist under both names, but never under none.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_parent(to)
}

/// Gives a file a second name, which must be unused, and syncs its folder.
pub(crate) fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    sync_parent(to)
}

/// Creates a folder and syncs its parent, unless the path exists.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.and_then(|()| sync_parent(path)),
    }
}

/// Creates a folder and its missing parents, and syncs the parent of each new one.
pub fn create_folders(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
        create_folders(parent)?;
    }
    create_folder(path)?;
    if path.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Syncs the folder of this path. As in PostgreSQL, a folder that may not be read or a file system that cannot sync folders is no
/// error: the entry itself exists.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent).and_then(|folder| folder.sync_all()) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}
