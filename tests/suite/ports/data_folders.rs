//! Temporary data folders and the adapters over them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Maintenance, Objects, Store};
use sparks_tests::{
    contract::{LeaseDuration, OutageFixture, PlatformFixture, QueueCapabilities, QueueFixture},
    worker::{open, with_queue},
};
use tempfile::TempDir;

/// Creates data folders in a temporary folder that is removed at the end of the test.
pub struct DataFolders {
    root: TempDir,
    created: AtomicU64,
}

impl DataFolders {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), created: AtomicU64::new(0) }
    }

    /// Returns the path of a data folder that does not exist yet.
    pub fn fresh(&self) -> PathBuf {
        self.root.path().join(self.created.fetch_add(1, Ordering::Relaxed).to_string())
    }

    pub fn store(&self) -> Arc<dyn Store> {
        open(&self.fresh()).store
    }

    pub fn maintenance(&self) -> Arc<dyn Maintenance> {
        open(&self.fresh()).store
    }

    pub fn objects(&self) -> Arc<dyn Objects> {
        open(&self.fresh()).objects
    }

    /// Creates a bucket whose folder is renamed during an outage.
    pub fn outage(&self) -> OutageFixture {
        let folder = self.fresh();
        let objects = open(&folder).objects;
        let (path, renamed) = (folder.join("objects"), folder.join("objects.renamed"));
        let (from, to) = (path.clone(), renamed.clone());
        OutageFixture {
            objects,
            start_outage: Box::new(move || std::fs::rename(&from, &to).unwrap()),
            end_outage: Box::new(move || std::fs::rename(&renamed, &path).unwrap()),
        }
    }

    pub fn platform(&self) -> PlatformFixture {
        let Embedded { platform, store, objects, .. } = open(&self.fresh());
        PlatformFixture { platform, store, objects }
    }

    pub fn queue(&self, lease_duration: LeaseDuration) -> QueueFixture {
        let visibility = match lease_duration {
            LeaseDuration::Long => Duration::from_secs(60),
            LeaseDuration::Short => Duration::from_millis(800),
        };
        let (folder, config) = (self.fresh(), with_queue(|queue| queue.visibility_timeout = visibility));
        let one = Embedded::open_or_create(&folder, config).unwrap();
        let other = Embedded::open_or_create(&folder, config).unwrap();
        let dead_letters = Arc::clone(&one.queue) as Arc<dyn DeadLetters>;
        QueueFixture {
            queue: one.queue,
            other: other.queue,
            dead_letters,
            visibility,
            capabilities: QueueCapabilities::ALL,
        }
    }
}

/// Copies a data folder that no process has open, with the times of its files, and returns the copy.
pub fn copy_folder(from: &Path, to: &Path) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_folder(&path, &to.join(name));
        } else {
            let (copy, modified) = (to.join(name), path.metadata().unwrap().modified().unwrap());
            fs::copy(&path, &copy).unwrap();
            fs::File::options().write(true).open(&copy).unwrap().set_modified(modified).unwrap();
        }
    }
    to.to_owned()
}
