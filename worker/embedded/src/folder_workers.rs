//! The workers of a data folder: the processes that hold a lock in it.

use async_trait::async_trait;
use sparks_domain::Timestamp;
use sparks_engine::{StoreError, WorkerAnnouncement, WorkerRegistry};

use crate::process_registry::ProcessRegistry;

/// The processes that use a data folder, except this one. A lock file is the announcement: it is written when a process opens the
/// folder, and ends with it.
pub struct FolderWorkers {
    processes: ProcessRegistry,
    own: String,
}

impl FolderWorkers {
    pub(crate) fn new(processes: ProcessRegistry, own: &str) -> Self {
        Self { processes, own: own.to_owned() }
    }
}

#[async_trait]
impl WorkerRegistry for FolderWorkers {
    async fn announce(&self, _: &WorkerAnnouncement) -> Result<(), StoreError> {
        Ok(())
    }

    async fn withdraw(&self, _: &WorkerAnnouncement) -> Result<(), StoreError> {
        Ok(())
    }

    async fn workers(&self, _: Timestamp) -> Result<Vec<WorkerAnnouncement>, StoreError> {
        Ok(self.processes.workers().into_iter().filter(|worker| worker.id != self.own).collect())
    }

    fn knows_all_releases(&self) -> bool {
        true
    }
}
