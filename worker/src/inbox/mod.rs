//! A folder from which photos are ingested: a file that is copied into it, by any means, is uploaded once it is
//! complete.
//!
//! No state is kept on disk. After a restart the files still in the folder are checked again, and the event log shows
//! which of them were uploaded before.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a failed unwrap fails the test"))]

mod file_check;
mod file_fingerprint;
mod folder_scan;
mod in_flight;
mod inbox_timing;
mod open_files;
mod output_folders;
mod scan_cycle;
mod warning_deduplicator;
mod watchlist;

#[cfg(test)]
mod tests;

use std::{
    fs::{File, TryLockError},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use sparks_engine::CpuPool;
use tokio::sync::watch;

use self::{
    in_flight::InFlightFiles, inbox_timing::InboxTiming, output_folders::OutputFolders, scan_cycle::NextScan,
    warning_deduplicator::WarningDeduplicator, watchlist::Watchlist,
};
use crate::upload::Uploader;

/// A watched folder. Processed files are moved to `done` below it, rejected ones to `rejected`.
///
/// The folder is polled, because network file systems do not send change notifications.
pub struct Inbox {
    folder: PathBuf,
    uploader: Uploader,
    cpu: CpuPool,
    timing: InboxTiming,
    output_folders: Arc<OutputFolders>,
    watchlist: Watchlist,
    in_flight: InFlightFiles,
    warnings: WarningDeduplicator,
}

impl Inbox {
    /// Opens the inbox, and creates the folder if it is missing. Files are decoded on the pool.
    pub fn open(folder: PathBuf, uploader: Uploader, cpu: CpuPool) -> io::Result<Self> {
        Self::with_timing(folder, uploader, cpu, InboxTiming::default())
    }

    fn with_timing(folder: PathBuf, uploader: Uploader, cpu: CpuPool, timing: InboxTiming) -> io::Result<Self> {
        let output_folders = OutputFolders::new(folder.clone());
        output_folders.create()?;
        Ok(Self {
            folder,
            uploader,
            cpu,
            timing,
            output_folders: Arc::new(output_folders),
            watchlist: Watchlist::new(timing),
            in_flight: InFlightFiles::default(),
            warnings: WarningDeduplicator::default(),
        })
    }

    /// Watches the folder until `stop` is true or its sender is dropped. Finishes the upload in progress first.
    ///
    /// Of several processes on one data folder one watches; another takes over when that one exits or crashes.
    pub async fn watch(mut self, mut stop: watch::Receiver<bool>) {
        let Some(_lock) = self.lock(&mut stop).await else { return };
        loop {
            let pause = match self.run_cycle(&stop).await {
                NextScan::Soon => self.timing.busy_poll_interval,
                NextScan::Later => self.timing.poll_interval,
            };
            if stopped_within(pause, &mut stop).await {
                break;
            }
        }
        self.move_settled().await;
    }

    /// Waits for the exclusive lock on the inbox. Returns `None` if stopped.
    async fn lock(&mut self, stop: &mut watch::Receiver<bool>) -> Option<File> {
        let path = self.folder.with_file_name("inbox.lock");
        loop {
            let file = File::options().create(true).write(true).truncate(false).open(&path);
            match file.map_err(TryLockError::Error).and_then(|file| file.try_lock().map(|()| file)) {
                Ok(locked) => return Some(locked),
                Err(TryLockError::WouldBlock) => tracing::debug!("another process watches the inbox"),
                Err(TryLockError::Error(error)) => self.warnings.warn(&path, &error),
            }
            if stopped_within(self.timing.poll_interval, stop).await {
                return None;
            }
        }
    }
}

async fn stopped_within(pause: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok()
}
