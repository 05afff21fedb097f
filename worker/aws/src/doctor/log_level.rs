//! The reader level of the event log, and workers that are too old for it.

use sparks_engine::{Clock, DependencyError, Finding, LogStatus, StoreError, SystemClock};

use super::Doctor;
use crate::{DynamoStore, Tables};

impl Doctor {
    pub(super) async fn log_level(&mut self, tables: &Tables) {
        let subject = "reader level of the event log";
        let finding = match self.log_status(tables).await {
            Ok(Some(status)) => status.finding(),
            Ok(None) => Finding::ok(subject, "the log is new"),
            // Reported by the permission checks already.
            Err(StoreError::Dependency(DependencyError::AccessDenied(_))) => return,
            Err(error @ StoreError::UnreadableLog(_)) => Finding::fail(subject, error, "use a newer sparks"),
            Err(error) => Finding::fail(subject, error, "check that the service can be reached, then retry"),
        };
        self.note(finding);
    }

    async fn log_status(&self, tables: &Tables) -> Result<Option<LogStatus>, StoreError> {
        match DynamoStore::open_existing(&self.connection, tables.clone()).await? {
            Some(store) => LogStatus::read(&store, &store, SystemClock.now()).await.map(Some),
            None => Ok(None),
        }
    }
}
