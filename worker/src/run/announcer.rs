//! Announces the worker, so that `sparks log level` knows which workers are too old for a level.

use std::{fs, sync::Arc};

use sparks_domain::Level;
use sparks_engine::{Clock, LogStatus, WorkerAnnouncement, WorkerRegistry};

/// Announces a running worker once a minute.
#[derive(Clone)]
pub struct Announcer {
    registry: Arc<dyn WorkerRegistry>,
    clock: Arc<dyn Clock>,
    worker: WorkerAnnouncement,
}

impl Announcer {
    /// Creates the announcer of this process.
    pub fn new(registry: Arc<dyn WorkerRegistry>, clock: Arc<dyn Clock>) -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "unknown host".into());
        let (host, pid, started) = (host.trim().to_owned(), std::process::id(), clock.now());
        let worker = WorkerAnnouncement {
            id: format!("{host}/{pid}/{}", started.as_millis()),
            host: format!("{host} process {pid}"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: Level::MAX,
            seen: started,
        };
        Self { registry, clock, worker }
    }

    /// Announces the worker for ever. A failure is no reason to stop: it is logged once.
    pub async fn run(self) {
        let mut is_failing = false;
        loop {
            let worker = WorkerAnnouncement { seen: self.clock.now(), ..self.worker.clone() };
            let result = self.registry.announce(&worker).await;
            if let Err(error) = &result
                && !is_failing
            {
                tracing::warn!(%error, "failed to announce this worker; `sparks log level` does not list it");
            }
            is_failing = result.is_err();
            tokio::time::sleep(LogStatus::ANNOUNCEMENT_INTERVAL).await;
        }
    }

    /// Removes the announcement, at the end.
    pub async fn withdraw(&self) {
        if let Err(error) = self.registry.withdraw(&self.worker).await {
            tracing::debug!(%error, "failed to remove the announcement of this worker; it expires");
        }
    }
}
