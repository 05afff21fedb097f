//! One look at the inbox: what is settled goes, what is complete is taken.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use sparks_domain::ImageId;
use tokio::{sync::watch, task::spawn_blocking};
use tracing::Instrument;

use super::{
    Inbox, in_flight::Taken, look::Look, shelf::Fate, stamp::Stamp, walk::Walk, watchlist::Due, writers::written_to,
};
use crate::upload::{Contents, Receipt};

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Files are waiting.
    Soon,
    /// Nothing is to be done now.
    Later,
}

impl Inbox {
    /// Looks once, and for a while takes what is complete.
    pub(super) async fn round(&mut self, stop: &watch::Receiver<bool>) -> Next {
        self.settle().await;
        // Looking through a large folder for the sake of one or two files is not worth it.
        if !self.in_flight.has_room() {
            return Next::Soon;
        }
        let due = self.due().await;
        let started = Instant::now();
        for due in due {
            let stopped = *stop.borrow() || stop.has_changed().is_err();
            if stopped || self.in_flight.is_full() || started.elapsed() > self.pace.round {
                return Next::Soon;
            }
            if let Err(error) = self.consider(&due).await {
                // What keeps one file from being uploaded is likely to keep all: there is time for them in the next round.
                self.trouble(&due.path, &error);
                return Next::Later;
            }
        }
        Next::Later
    }

    /// Puts away the files whose messages are settled.
    pub(super) async fn settle(&mut self) {
        let backend = Arc::clone(&self.uploader.backend);
        let database = self.folder.with_file_name("sparks.db");
        let settled = match self.in_flight.settled(&backend.queue).await {
            Ok(settled) => settled,
            Err(error) => return self.complaints.about(&database, &error),
        };
        self.complaints.resolved(&database);
        for taken in settled {
            match taken.fate(&backend).await {
                Ok(Some(fate)) => self.put_away(&taken.path, taken.stamp, fate).instrument(about(&taken.image)).await,
                Ok(None) => self.trouble(&taken.path, &"nothing came of it"),
                Err(error) => {
                    self.trouble(&taken.path, &error);
                    self.in_flight.add(taken);
                }
            }
        }
    }

    /// The files that have not changed for a while and that nobody writes to.
    async fn due(&mut self) -> Vec<Due> {
        let (folder, shelf) = (self.folder.clone(), Arc::clone(&self.shelf));
        let walk = spawn_blocking(move || shelf.prepare().map(|()| Walk::through(&folder))).await;
        let walk = match walk.map_err(io::Error::other).flatten() {
            Ok(walk) => walk,
            Err(error) => {
                self.complaints.about(&self.folder, &error);
                return Vec::new();
            }
        };
        let now = Instant::now();
        self.complaints.resolved(&self.folder);
        self.watchlist.see(walk.files, now);
        self.complain(&walk.unreadable);
        let mut due = self.watchlist.due(now);
        due.retain(|file| !self.in_flight.contains(&file.path));
        let asked = spawn_blocking(move || {
            let written = written_to(&due);
            due.retain(|file| file.stamp.id.is_none_or(|id| !written.contains(&id)));
            due
        });
        asked.await.unwrap_or_default()
    }

    /// Looks into a file, and does with it what is to be done. Fails where it cannot be uploaded.
    async fn consider(&mut self, due: &Due) -> anyhow::Result<()> {
        match Look::into(due, &self.uploader, &self.cpu).await {
            Ok(Look::Take(contents)) => self.take(due, contents).await?,
            Ok(Look::Foreign(reason)) => self.put_away(&due.path, due.stamp, Fate::Rejected(reason)).await,
            Ok(Look::Unsure) => self.watchlist.unsure(&due.path),
            Ok(Look::Changed) => {}
            Err(unreadable) => self.trouble(&due.path, &unreadable),
        }
        Ok(())
    }

    async fn take(&mut self, due: &Due, contents: Contents) -> anyhow::Result<()> {
        let submitted = self.uploader.upload(&due.path, contents).await?;
        let image = submitted.image;
        self.complaints.resolved(&due.path);
        match submitted.receipt {
            Receipt::Queued(message) => {
                tracing::info!(file = %self.name(&due.path), %image, "taken");
                let (path, deduplication) = (due.path.clone(), submitted.deduplication);
                self.in_flight.add(Taken { path, stamp: due.stamp, image, deduplication, message });
            }
            Receipt::Duplicate => {
                tracing::info!(file = %self.name(&due.path), %image, "taken before");
                self.put_away(&due.path, due.stamp, Fate::Done).instrument(about(&image)).await;
            }
            Receipt::Rejected(reason) => {
                self.put_away(&due.path, due.stamp, Fate::Rejected(reason)).instrument(about(&image)).await;
            }
        }
        Ok(())
    }

    /// Moves a file out of the way. One that is not as it was read stays: it is another one.
    async fn put_away(&mut self, path: &Path, stamp: Stamp, fate: Fate) {
        let (shelf, file, became) = (Arc::clone(&self.shelf), path.to_owned(), fate.clone());
        let moved = spawn_blocking(move || shelf.put(&file, stamp, &became)).await;
        match (moved.map_err(io::Error::other).flatten(), fate) {
            (Ok(Some(to)), Fate::Done) => tracing::info!(file = %self.name(path), to = %self.name(&to), "done"),
            (Ok(Some(to)), Fate::Rejected(reason)) => {
                tracing::info!(file = %self.name(path), to = %self.name(&to), reason, "rejected");
            }
            (Ok(None), _) => tracing::info!(file = %self.name(path), "gone or changed meanwhile"),
            (Err(error), _) => self.trouble(path, &error),
        }
    }

    fn trouble(&mut self, path: &Path, reason: &impl std::fmt::Display) {
        self.complaints.about(path, reason);
        self.watchlist.again(path, Instant::now());
    }

    /// Says what cannot be looked at, and forgets what was said of files that are gone.
    fn complain(&mut self, unreadable: &[(PathBuf, String)]) {
        let watchlist = &self.watchlist;
        let is_here = |path: &Path| watchlist.contains(path) || unreadable.iter().any(|(other, _)| other == path);
        self.complaints.retain(|path| is_here(path) || !path.starts_with(&self.folder));
        for (path, reason) in unreadable {
            self.complaints.about(path, reason);
        }
    }

    fn name<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.folder).unwrap_or(path).display()
    }
}

/// Lines about a file whose photo is known name it.
fn about(image: &ImageId) -> tracing::Span {
    tracing::info_span!("file", %image)
}
