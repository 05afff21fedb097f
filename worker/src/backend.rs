//! Where everything is, whatever it is made of.

use std::sync::Arc;

use sparks_embedded::Embedded;
use sparks_engine::{DeadLetters, Maintenance, Objects, Platform, Publisher, Queue};

use crate::wiring::WrongUse;

/// The ports of a backend.
#[derive(Clone)]
pub struct Backend {
    /// Table, log and signatures.
    pub store: Arc<dyn Maintenance>,
    /// Originals and pictures.
    pub objects: Arc<dyn Objects>,
    /// Work to do.
    pub queue: Arc<dyn Queue>,
    /// What could not be done.
    pub letters: Arc<dyn DeadLetters>,
    /// The platform's own part, for whoever plays it.
    pub platform: Arc<dyn Platform>,
    /// What others are told.
    pub publisher: Arc<dyn Publisher>,
    /// What people call it.
    pub place: String,
    /// The data folder, where it is one.
    pub folder: Option<Arc<Embedded>>,
}

impl Backend {
    /// The data folder, for what is done nowhere else.
    pub fn folder(&self, what: &str, instead: &str) -> Result<&Arc<Embedded>, WrongUse> {
        self.folder.as_ref().ok_or_else(|| WrongUse(format!("{what} needs a data folder: {instead}")))
    }

    /// Everything in a data folder.
    pub fn of_folder(folder: Arc<Embedded>, place: String) -> Self {
        Self {
            store: Arc::clone(&folder.store) as Arc<_>,
            objects: Arc::clone(&folder.objects) as Arc<_>,
            queue: Arc::clone(&folder.queue) as Arc<_>,
            platform: Arc::clone(&folder.platform) as Arc<_>,
            letters: Arc::clone(&folder.queue) as Arc<_>,
            publisher: Arc::clone(&folder.publisher) as Arc<_>,
            place,
            folder: Some(folder),
        }
    }
}
