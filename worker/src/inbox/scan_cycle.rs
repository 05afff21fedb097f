//! One cycle of the inbox: moves files whose messages are settled, scans the folder and uploads complete files.

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
    Inbox, file_check::FileCheck, file_fingerprint::FileFingerprint, folder_scan::FolderScan, in_flight::UploadedFile,
    open_files::files_open_for_writing, output_folders::FileResult, watchlist::StableFile,
};
use crate::upload::{FileContents, UploadStatus};

/// When to scan again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextScan {
    /// Files are waiting.
    Soon,
    /// Nothing to do now.
    Later,
}

impl Inbox {
    /// Scans the folder and uploads complete files for a limited time.
    pub(super) async fn run_cycle(&mut self, stop: &watch::Receiver<bool>) -> NextScan {
        self.move_settled().await;
        // A scan of a large folder is too expensive for one or two files.
        if !self.in_flight.has_room() {
            return NextScan::Soon;
        }
        let files = self.stable_files().await;
        let started = Instant::now();
        for file in files {
            let is_stopped = *stop.borrow() || stop.has_changed().is_err();
            if is_stopped || self.in_flight.is_full() || started.elapsed() > self.timing.max_upload_time {
                return NextScan::Soon;
            }
            if let Err(error) = self.check_and_upload(&file).await {
                // What prevents one upload probably prevents all, so the others wait for the next cycle.
                self.warn_and_retry(&file.path, &error);
                return NextScan::Later;
            }
        }
        NextScan::Later
    }

    /// Moves the files whose messages are settled.
    pub(super) async fn move_settled(&mut self) {
        let backend = Arc::clone(&self.uploader.backend);
        let database = self.folder.with_file_name("sparks.db");
        let settled = match self.in_flight.remove_settled(&backend.queue).await {
            Ok(settled) => settled,
            Err(error) => return self.warnings.warn(&database, &error),
        };
        self.warnings.clear(&database);
        for file in settled {
            match file.result(&backend).await {
                Ok(Some(result)) => {
                    let span = file_span(&file.image);
                    self.move_file(&file.path, file.fingerprint, result).instrument(span).await;
                }
                Ok(None) => {
                    self.warn_and_retry(&file.path, &"its message is settled, but there is no event and no dead letter")
                }
                Err(error) => {
                    self.warn_and_retry(&file.path, &error);
                    self.in_flight.add(file);
                }
            }
        }
    }

    /// Returns the files that have not changed for a while and that no process has open for writing.
    async fn stable_files(&mut self) -> Vec<StableFile> {
        let (folder, output_folders) = (self.folder.clone(), Arc::clone(&self.output_folders));
        let scan = spawn_blocking(move || output_folders.create().map(|()| FolderScan::of(&folder))).await;
        let scan = match scan.map_err(io::Error::other).flatten() {
            Ok(scan) => scan,
            Err(error) => {
                self.warnings.warn(&self.folder, &error);
                return Vec::new();
            }
        };
        let now = Instant::now();
        self.warnings.clear(&self.folder);
        self.watchlist.update(scan.files, now);
        self.warn_unreadable(&scan.unreadable);
        let mut files = self.watchlist.stable_files(now);
        files.retain(|file| !self.in_flight.contains(&file.path));
        let filtered = spawn_blocking(move || {
            let open = files_open_for_writing(&files);
            files.retain(|file| file.fingerprint.id.is_none_or(|id| !open.contains(&id)));
            files
        });
        filtered.await.unwrap_or_default()
    }

    /// Checks a file and uploads, rejects or leaves it. Returns an error if the upload fails.
    async fn check_and_upload(&mut self, file: &StableFile) -> anyhow::Result<()> {
        match FileCheck::of(file, &self.uploader, &self.cpu).await {
            Ok(FileCheck::Complete(contents)) => self.upload(file, contents).await?,
            Ok(FileCheck::Unsupported(reason)) => {
                self.move_file(&file.path, file.fingerprint, FileResult::Rejected(reason)).await;
            }
            Ok(FileCheck::Incomplete) => self.watchlist.mark_incomplete(&file.path),
            Ok(FileCheck::Changed) => {}
            Err(unreadable) => self.warn_and_retry(&file.path, &unreadable),
        }
        Ok(())
    }

    async fn upload(&mut self, file: &StableFile, contents: FileContents) -> anyhow::Result<()> {
        let result = self.uploader.upload(&file.path, contents).await?;
        let image = result.image;
        self.warnings.clear(&file.path);
        match result.status {
            UploadStatus::Queued(message) => {
                tracing::info!(file = %self.relative(&file.path), %image, "uploaded");
                let (path, deduplication_id) = (file.path.clone(), result.deduplication_id);
                self.in_flight.add(UploadedFile {
                    path,
                    fingerprint: file.fingerprint,
                    image,
                    deduplication_id,
                    message,
                });
            }
            UploadStatus::Duplicate => {
                tracing::info!(file = %self.relative(&file.path), %image, "duplicate");
                self.move_file(&file.path, file.fingerprint, FileResult::Done).instrument(file_span(&image)).await;
            }
            UploadStatus::Rejected(reason) => {
                let rejected = FileResult::Rejected(reason);
                self.move_file(&file.path, file.fingerprint, rejected).instrument(file_span(&image)).await;
            }
        }
        Ok(())
    }

    /// Moves a file to its output folder, unless it has changed since it was read.
    async fn move_file(&mut self, path: &Path, fingerprint: FileFingerprint, result: FileResult) {
        let (output_folders, file, moved_as) = (Arc::clone(&self.output_folders), path.to_owned(), result.clone());
        let moved = spawn_blocking(move || output_folders.move_file(&file, fingerprint, &moved_as)).await;
        match (moved.map_err(io::Error::other).flatten(), result) {
            (Ok(Some(to)), FileResult::Done) => {
                tracing::info!(file = %self.relative(path), to = %self.relative(&to), "done");
            }
            (Ok(Some(to)), FileResult::Rejected(reason)) => {
                tracing::info!(file = %self.relative(path), to = %self.relative(&to), reason, "rejected");
            }
            (Ok(None), _) => tracing::info!(file = %self.relative(path), "file was removed or changed meanwhile"),
            (Err(error), _) => self.warn_and_retry(path, &error),
        }
    }

    fn warn_and_retry(&mut self, path: &Path, reason: &impl std::fmt::Display) {
        self.warnings.warn(path, reason);
        self.watchlist.retry_later(path, Instant::now());
    }

    /// Warns about unreadable files, and forgets warnings about files that no longer exist.
    fn warn_unreadable(&mut self, unreadable: &[(PathBuf, String)]) {
        let watchlist = &self.watchlist;
        let exists = |path: &Path| watchlist.contains(path) || unreadable.iter().any(|(other, _)| other == path);
        self.warnings.retain(|path| exists(path) || !path.starts_with(&self.folder));
        for (path, reason) in unreadable {
            self.warnings.warn(path, reason);
        }
    }

    fn relative<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.folder).unwrap_or(path).display()
    }
}

/// Adds the image ID to the log lines about a file.
fn file_span(image: &ImageId) -> tracing::Span {
    tracing::info_span!("file", %image)
}
