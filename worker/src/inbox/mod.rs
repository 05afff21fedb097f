//! A folder that takes photos in: whatever is copied into it, however it is copied, is taken once it is complete.
//!
//! Nothing here is remembered on disk. A file that is still in the folder is looked at again after a restart, and the log
//! says whether its photo was taken already.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop"))]

mod complaints;
mod in_flight;
mod look;
mod pace;
mod round;
mod shelf;
mod stamp;
mod walk;
mod watchlist;
mod writers;

#[cfg(test)]
mod tests;

use std::{
    fs::{File, TryLockError},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use sparks_engine::Cpu;
use tokio::sync::watch;

use self::{complaints::Complaints, in_flight::InFlight, pace::Pace, round::Next, shelf::Shelf, watchlist::Watchlist};
use crate::upload::Uploader;

/// A folder that is watched. What was taken stands in `done` below it, what could not be taken in `rejected`.
///
/// The folder is asked again and again, because folders of a network do not tell when something comes.
pub struct Inbox {
    folder: PathBuf,
    uploader: Uploader,
    cpu: Cpu,
    pace: Pace,
    shelf: Arc<Shelf>,
    watchlist: Watchlist,
    in_flight: InFlight,
    complaints: Complaints,
}

impl Inbox {
    /// The inbox in this folder of the data folder, which is made if it is not there. Files are decoded on these cores.
    pub fn open(folder: PathBuf, uploader: Uploader, cpu: Cpu) -> io::Result<Self> {
        Self::with_pace(folder, uploader, cpu, Pace::default())
    }

    fn with_pace(folder: PathBuf, uploader: Uploader, cpu: Cpu, pace: Pace) -> io::Result<Self> {
        let shelf = Shelf::new(folder.clone());
        shelf.prepare()?;
        Ok(Self {
            folder,
            uploader,
            cpu,
            pace,
            shelf: Arc::new(shelf),
            watchlist: Watchlist::new(pace),
            in_flight: InFlight::default(),
            complaints: Complaints::default(),
        })
    }

    /// Watches until `stop` says so, or nobody is left to say it. A file that is being taken is finished first.
    ///
    /// Of several processes on one data folder one watches; another takes over when it ends, however it ends.
    pub async fn watch(mut self, mut stop: watch::Receiver<bool>) {
        let Some(_lock) = self.turn(&mut stop).await else { return };
        loop {
            let pause = match self.round(&stop).await {
                Next::Soon => self.pace.soon,
                Next::Later => self.pace.poll,
            };
            if stopped_within(pause, &mut stop).await {
                break;
            }
        }
        self.settle().await;
    }

    /// Waits until nobody else watches.
    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Option<File> {
        let path = self.folder.with_file_name("inbox.lock");
        loop {
            let file = File::options().create(true).write(true).truncate(false).open(&path);
            match file.map_err(TryLockError::Error).and_then(|file| file.try_lock().map(|()| file)) {
                Ok(locked) => return Some(locked),
                Err(TryLockError::WouldBlock) => tracing::debug!("another process watches the inbox"),
                Err(TryLockError::Error(error)) => self.complaints.about(&path, &error),
            }
            if stopped_within(self.pace.poll, stop).await {
                return None;
            }
        }
    }
}

async fn stopped_within(pause: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok()
}
