//! A data folder for one run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// A data folder that is removed on drop unless it is to be kept.
pub struct TemporaryFolder {
    path: PathBuf,
    keep: bool,
}

impl TemporaryFolder {
    /// Creates the folder in the system's temporary folder. The name must be unused.
    pub fn create(name: &str, keep: bool) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)
            .with_context(|| format!("failed to create {}; --data selects another folder", path.display()))?;
        Ok(Self { path, keep })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
