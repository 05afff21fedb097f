//! The reader level of a data folder, which raises itself: all processes that use the folder are known.

use std::{
    fs::{File, TryLockError},
    path::PathBuf,
};

use rusqlite::Transaction;
use sparks_domain::{Event, Level, LevelRaised, Version};
use sparks_engine::{Commit, DependencyError, StoreError};

use crate::{event_log, process_registry::ProcessRegistry};

/// Raises the level of a data folder when a commit needs a higher one.
#[derive(Debug, Clone)]
pub(crate) struct FolderLevel {
    setup_lock: PathBuf,
    processes: ProcessRegistry,
}

impl FolderLevel {
    /// Creates the level of the folder with these processes. Each of them holds the lock while it opens the folder.
    pub fn new(setup_lock: PathBuf, processes: ProcessRegistry) -> Self {
        Self { setup_lock, processes }
    }

    /// Raises the level where the commit needs it, in the transaction of the commit. Fails while a process of an earlier release uses
    /// the folder, because it could not read the log any more.
    pub fn raise_for(&self, tx: &Transaction<'_>, commit: &Commit) -> Result<(), StoreError> {
        let level = event_log::level(tx)?;
        let (form, needed) = match commit.level_after(level) {
            Ok(_) => return Ok(()),
            Err(StoreError::LevelTooLow { form, needed, .. }) if needed <= Level::MAX => (form, needed),
            Err(error) => return Err(error),
        };
        let _exclusive = self.lock()?;
        if let Some(old) = self.processes.workers().into_iter().find(|process| process.level < needed) {
            let remedy = format!("stop {}, which is of a release {}", old.host, old.version);
            return Err(StoreError::LevelTooLow { form, needed, level, remedy });
        }
        let identity_seq = event_log::head(tx, "IDENTITY")?;
        let raised = Event::LevelRaised(LevelRaised { v: Version, level: needed, identity_seq });
        let raise =
            Commit { actor: commit.actor.clone(), events: vec![raised], ..Commit::without_events(commit.when, None) };
        event_log::append(tx, &raise)?;
        tracing::info!(level = needed.0, form, "raised the reader level of the event log");
        Ok(())
    }

    /// Keeps processes from opening the folder. Does not wait: a process that holds the lock may wait for this transaction.
    fn lock(&self) -> Result<File, StoreError> {
        let unavailable = |error: std::io::Error| DependencyError::Unavailable(error.to_string());
        let file = File::options().append(true).create(true).open(&self.setup_lock).map_err(unavailable)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(DependencyError::Throttled("another process opens the data folder".into()).into())
            }
            Err(TryLockError::Error(error)) => Err(unavailable(error).into()),
        }
    }
}
