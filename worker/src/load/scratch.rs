//! A data folder for one run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// A folder of its own, gone with this value unless it is to be kept.
pub struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes one under this name, which nobody else may have.
    pub fn make(name: &str, keep: bool) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {} (--data names another)", path.display()))?;
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
