//! Warnings, each given once.

use std::{
    collections::HashMap,
    fmt::Display,
    path::{Path, PathBuf},
};

/// What was complained about: somebody who looks every second need not say so every second.
#[derive(Debug, Default)]
pub(super) struct Complaints(HashMap<PathBuf, String>);

impl Complaints {
    /// Warns, unless this is what was said of it last.
    pub fn about(&mut self, path: &Path, reason: &impl Display) {
        let reason = format!("{reason:#}");
        if self.0.get(path) != Some(&reason) {
            tracing::warn!(file = %path.display(), reason, "the inbox will try again");
            self.0.insert(path.to_owned(), reason);
        }
    }

    /// It is well again.
    pub fn resolved(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Forgets what is not of interest any more.
    pub fn retain(&mut self, of_interest: impl Fn(&Path) -> bool) {
        self.0.retain(|path, _| of_interest(path));
    }
}
