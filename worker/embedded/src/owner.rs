//! Who holds a lease: a process, known by a lock file that the system unlocks when the process ends, however it ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::PathBuf,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

/// The processes that share a data folder.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    folder: PathBuf,
}

/// This process.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    path: PathBuf,
    _locked: File,
}

impl Owners {
    /// The processes with a lock file in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether the process has ended. Its lock file is removed, so that the folder does not grow.
    pub fn is_dead(&self, name: &str) -> bool {
        let path = self.folder.join(name);
        let Ok(file) = File::open(&path) else { return true };
        match file.try_lock() {
            Ok(()) => {
                let _ = fs::remove_file(path);
                true
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }
}

impl Owner {
    /// Makes this process known. Alive until dropped.
    pub fn register(owners: &Owners) -> io::Result<Self> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{}-{nanos}", process::id());
        let path = owners.folder.join(&name);
        let locked = File::create_new(&path)?;
        locked.lock()?;
        Ok(Self { name, path, _locked: locked })
    }

    /// The process's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
