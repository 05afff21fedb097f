//! Uploads the files of a batch.

use std::path::{Path, PathBuf};

use super::{IngestBatch, IngestedPhoto};
use crate::upload::{FileContents, UploadResult, UploadStatus, Uploader};

/// Uploads all files one after the other, so that messages have the order of the files.
pub async fn submit_files(uploader: &Uploader, files: Vec<PathBuf>, batch: &IngestBatch) {
    for path in files {
        match submit(uploader, &path, batch).await {
            Ok(result) => record(batch, path, result),
            Err(error) => batch.add_failed(path, format!("{error:#}")),
        }
    }
    batch.finish_submission();
}

async fn submit(uploader: &Uploader, path: &Path, batch: &IngestBatch) -> anyhow::Result<UploadResult> {
    let (file, max_bytes) = (path.to_owned(), uploader.max_bytes);
    match tokio::task::spawn_blocking(move || FileContents::read(&file, max_bytes)).await?? {
        FileContents::Bytes(bytes) => {
            let prepared = uploader.prepare(path, bytes);
            match batch.is_first(prepared.image()) {
                true => uploader.submit(prepared).await,
                false => Ok(prepared.result(UploadStatus::Duplicate)),
            }
        }
        FileContents::TooLarge { bytes, hash } => uploader.reject_too_large(path, bytes, hash).await,
    }
}

fn record(batch: &IngestBatch, path: PathBuf, result: UploadResult) {
    let UploadResult { image, deduplication_id, status } = result;
    let photo = |is_duplicate| IngestedPhoto { path, image, deduplication_id, is_duplicate };
    match status {
        UploadStatus::Duplicate => batch.add_settled(photo(true)),
        UploadStatus::Queued(message) => batch.add_queued(photo(false), message),
        // The summary reads the reason from the event log.
        UploadStatus::Rejected(_) => batch.add_settled(photo(false)),
    }
}
