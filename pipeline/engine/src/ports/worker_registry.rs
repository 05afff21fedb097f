//! The running workers, so that an operator knows which of them are too old for a level of the log.

use async_trait::async_trait;
use sparks_domain::{Level, Timestamp};

use super::StoreError;

/// Knows the workers that share a log.
#[async_trait]
pub trait WorkerRegistry: Send + Sync {
    /// Announces a running worker, or that it still runs.
    async fn announce(&self, worker: &WorkerAnnouncement) -> Result<(), StoreError>;

    /// Removes the announcement of a worker that stops.
    async fn withdraw(&self, worker: &WorkerAnnouncement) -> Result<(), StoreError>;

    /// Returns the workers that were seen at this time or later.
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerAnnouncement>, StoreError>;

    /// Whether workers of releases that do not announce themselves are found, too.
    fn knows_all_releases(&self) -> bool;
}

/// A running worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerAnnouncement {
    /// A name that no other worker has.
    pub id: String,
    /// The machine and the process, for people.
    pub host: String,
    /// The release.
    pub version: String,
    /// The highest level of a log that it reads.
    pub level: Level,
    /// When it was seen last.
    pub seen: Timestamp,
}
