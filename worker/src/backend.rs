//! The backend of a command: a data folder or the cloud, behind the same ports.

use std::sync::Arc;

use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Maintenance, Objects, PlatformClient, Publisher, Queue, WorkerRegistry};

use crate::wiring::UsageError;

/// The ports of a backend.
#[derive(Clone)]
pub struct Backend {
    /// Table, event log and face signatures.
    pub store: Arc<dyn Maintenance>,
    /// Originals, variants and crops.
    pub objects: Arc<dyn Objects>,
    /// Work queue.
    pub queue: Arc<dyn Queue>,
    /// Messages that could not be processed.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// The uploading side of the platform, for the load test.
    #[cfg_attr(not(feature = "tools"), allow(dead_code, reason = "only the load test uploads through it"))]
    pub platform: Arc<dyn PlatformClient>,
    /// Publisher of event notifications.
    pub publisher: Arc<dyn Publisher>,
    /// The running workers.
    pub workers: Arc<dyn WorkerRegistry>,
    /// Name of the data folder or table, for messages.
    pub location: String,
    /// The data folder, unless the backend is in the cloud.
    pub folder: Option<Arc<Embedded>>,
}

impl Backend {
    /// Returns the data folder, or an error that says what to use `instead` of `what` in the cloud.
    pub fn require_folder(&self, what: &str, instead: &str) -> Result<&Arc<Embedded>, UsageError> {
        self.folder.as_ref().ok_or_else(|| UsageError(format!("{what} needs a data folder: {instead}")))
    }

    /// Returns the ports of a data folder.
    pub fn in_folder(folder: Arc<Embedded>, location: String) -> Self {
        Self {
            store: Arc::clone(&folder.store) as Arc<_>,
            objects: Arc::clone(&folder.objects) as Arc<_>,
            queue: Arc::clone(&folder.queue) as Arc<_>,
            platform: Arc::clone(&folder.platform) as Arc<_>,
            dead_letters: Arc::clone(&folder.queue) as Arc<_>,
            publisher: Arc::clone(&folder.publisher) as Arc<_>,
            workers: Arc::clone(&folder.workers) as Arc<_>,
            location,
            folder: Some(folder),
        }
    }
}
