//! The processes that share a data folder. Each holds a lock on a file, which the operating system releases when the process
//! ends for any reason, so that its leases and temporary files can be cleaned up at once.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::PathBuf,
    process,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use sparks_domain::Level;
use sparks_engine::{Clock, SystemClock, WorkerAnnouncement};

/// Suffix of a lock file that is not locked yet.
const UNREGISTERED: &str = ".new";
/// Age from which such a file is stale.
const MAX_REGISTRATION: Duration = Duration::from_secs(60);

/// The lock files of the processes that share a data folder.
#[derive(Debug, Clone)]
pub(crate) struct ProcessRegistry {
    folder: PathBuf,
    /// Processes whose lock could not be checked the last time. Each is logged once, although locks are checked several times a second.
    unknown: Arc<Mutex<BTreeSet<String>>>,
}

/// The registration of this process, which ends when dropped.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    name: String,
    _lock: File,
}

impl ProcessRegistry {
    /// Creates the registry over the lock files in this folder.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, unknown: Arc::default() }
    }

    /// Returns whether the process has ended for certain: its lock file is absent, or not locked. A lock file that cannot be checked,
    /// such as with too many open files, is no proof: the process may be working on its messages.
    pub fn has_ended(&self, name: &str) -> bool {
        let lock = File::open(self.folder.join(name)).map_err(TryLockError::Error).and_then(|file| file.try_lock());
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        match lock {
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::NotFound => {
                if unknown.insert(name.to_owned()) {
                    tracing::warn!(process = name, %error, "failed to check whether a process has ended; its leases are kept");
                }
                false
            }
            lock => {
                unknown.remove(name);
                !matches!(lock, Err(TryLockError::WouldBlock))
            }
        }
    }

    /// Returns the processes that have ended and may still hold leases.
    pub fn ended(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        // A process that is still registering holds no leases.
        names.filter(|name| !name.ends_with(UNREGISTERED) && self.has_ended(name)).collect()
    }

    /// Returns the running processes.
    pub fn running(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        names.filter(|name| !name.ends_with(UNREGISTERED) && !self.has_ended(name)).collect()
    }

    /// Returns the running processes with their release, which they write into their lock file. Earlier releases left it empty.
    pub fn workers(&self) -> Vec<WorkerAnnouncement> {
        let worker = |id: String| {
            let registration = fs::read_to_string(self.folder.join(&id)).unwrap_or_default();
            let registration: Value = serde_json::from_str(&registration).unwrap_or_default();
            let level = registration["level"].as_u64().and_then(|level| u32::try_from(level).ok());
            WorkerAnnouncement {
                host: format!("process {}", id.split('-').next().unwrap_or_default()),
                id,
                version: registration["version"].as_str().unwrap_or("before 0.2.0").to_owned(),
                level: level.map_or(Level::FIRST, Level),
                seen: SystemClock.now(),
            }
        };
        self.running().into_iter().map(worker).collect()
    }

    /// Removes the files of processes that ended during their registration.
    fn remove_stale(&self) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name().to_string_lossy().ends_with(UNREGISTERED)) {
            let age =
                file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > MAX_REGISTRATION) {
                let _ = fs::remove_file(file.path());
            }
        }
    }

    /// Removes the lock file of a process that has ended, after its leases have been released.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.folder.join(name));
    }
}

impl ProcessLock {
    /// Registers this process.
    pub fn register(processes: &ProcessRegistry) -> io::Result<Self> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{}-{nanos}", process::id());
        // Locked before it gets its final name, so that an unlocked file always means that its process has ended.
        processes.remove_stale();
        let unregistered = processes.folder.join(format!("{name}{UNREGISTERED}"));
        let mut lock = File::create_new(&unregistered)?;
        lock.lock()?;
        let registration = json!({ "version": env!("CARGO_PKG_VERSION"), "level": Level::MAX });
        lock.write_all(registration.to_string().as_bytes())?;
        fs::rename(unregistered, processes.folder.join(&name))?;
        Ok(Self { name, _lock: lock })
    }

    /// Returns the name of the process: its ID and start time.
    pub fn name(&self) -> &str {
        &self.name
    }
}
