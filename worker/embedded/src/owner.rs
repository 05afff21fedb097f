//! Who holds a lease: a process, known by a lock file that the system unlocks when the process ends, however it ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::PathBuf,
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How the name of a lock file ends that is not locked yet.
const UNSEEN: &str = ".new";
const LONGEST_REGISTRATION: Duration = Duration::from_secs(60);

/// The processes that share a data folder.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    folder: PathBuf,
}

/// This process.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    _locked: File,
}

impl Owners {
    /// The processes with a lock file in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether the process has ended.
    pub fn is_dead(&self, name: &str) -> bool {
        let Ok(file) = File::open(self.folder.join(name)) else { return true };
        match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }

    /// The processes that have ended and may have left leases behind.
    pub fn dead(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        // Whoever is still being registered is not known by that name, and holds nothing.
        names.filter(|name| !name.ends_with(UNSEEN) && self.is_dead(name)).collect()
    }

    /// The processes that have not ended.
    pub fn alive(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        names.filter(|name| !name.ends_with(UNSEEN) && !self.is_dead(name)).collect()
    }

    /// Removes what processes left behind that ended while they were being registered.
    fn sweep(&self) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name().to_string_lossy().ends_with(UNSEEN)) {
            let age = file.metadata().and_then(|about| about.modified()).ok().and_then(|then| then.elapsed().ok());
            if age.is_some_and(|age| age > LONGEST_REGISTRATION) {
                let _ = fs::remove_file(file.path());
            }
        }
    }

    /// Forgets a process that has ended, once nothing of it is left.
    pub fn forget(&self, name: &str) {
        let _ = fs::remove_file(self.folder.join(name));
    }
}

impl Owner {
    /// Makes this process known. Alive until dropped.
    pub fn register(owners: &Owners) -> io::Result<Self> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{}-{nanos}", process::id());
        // Locked before it is seen under its name: whoever finds it unlocked knows that its process has ended.
        owners.sweep();
        let unseen = owners.folder.join(format!("{name}{UNSEEN}"));
        let locked = File::create_new(&unseen)?;
        locked.lock()?;
        fs::rename(unseen, owners.folder.join(&name))?;
        Ok(Self { name, _locked: locked })
    }

    /// The process's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
