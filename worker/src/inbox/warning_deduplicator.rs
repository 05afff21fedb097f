//! Warnings that are logged once rather than on every scan.

use std::{
    collections::HashMap,
    fmt::Display,
    path::{Path, PathBuf},
};

/// The last warning about each file. The inbox scans every second, and a lasting problem is logged once.
#[derive(Debug, Default)]
pub(super) struct WarningDeduplicator(HashMap<PathBuf, String>);

impl WarningDeduplicator {
    /// Logs a warning, unless it is the last one about this file.
    pub fn warn(&mut self, path: &Path, reason: &impl Display) {
        let reason = format!("{reason:#}");
        if self.0.get(path) != Some(&reason) {
            tracing::warn!(file = %path.display(), reason, "failed to ingest a file of the inbox; will retry");
            self.0.insert(path.to_owned(), reason);
        }
    }

    /// Forgets the warning about a file whose problem is solved.
    pub fn clear(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Forgets the warnings about all other files.
    pub fn retain(&mut self, is_relevant: impl Fn(&Path) -> bool) {
        self.0.retain(|path, _| is_relevant(path));
    }
}
