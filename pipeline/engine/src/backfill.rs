//! Backfill: queues originals for which no message was ever sent.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{ImageId, Timestamp, object_keys};

use crate::{Failure, Maintenance, ObjectEntry, Objects, Queue, Request, parse_message};

/// Lists the originals in the bucket and sends the platform's message for each that is not in the event log.
pub struct Backfill {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// The event log.
    pub store: Arc<dyn Maintenance>,
    /// The queue that receives the messages.
    pub queue: Arc<dyn Queue>,
    /// The name of the bucket.
    pub bucket: String,
}

/// The result of a backfill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackfillReport {
    /// Originals in the bucket that are recent enough.
    pub originals: u64,
    /// Originals that are in the event log.
    pub known: u64,
    /// Originals that are not, and for which a message was sent.
    pub sent: u64,
    /// Objects under `originals/` whose key is not that of an original.
    pub foreign: u64,
}

/// Large, because a bucket stored as a folder is walked from the start for each page.
const PAGE: usize = 10_000;

impl Backfill {
    /// Lists the bucket once. Safe to interrupt and to repeat: the queue deduplicates waiting messages, and processed photos are
    /// in the event log. With `dry_run`, nothing is sent.
    pub async fn run(
        &self,
        since: Option<Timestamp>,
        dry_run: bool,
        progress: impl Fn(u64),
    ) -> Result<BackfillReport, Failure> {
        let mut report = BackfillReport::default();
        let mut after: Option<String> = None;
        loop {
            let page = self.objects.list(object_keys::ORIGINALS, after.as_deref(), PAGE).await?;
            let Some(last) = page.last().map(|entry| entry.key.clone()) else { return Ok(report) };
            let recent = page.into_iter().filter(|entry| since.is_none_or(|since| entry.modified >= since));
            self.send_missing(recent.collect(), dry_run, &mut report).await?;
            progress(report.originals);
            after = Some(last);
        }
    }

    async fn send_missing(
        &self,
        page: Vec<ObjectEntry>,
        dry_run: bool,
        report: &mut BackfillReport,
    ) -> Result<(), Failure> {
        let originals: Vec<(ImageId, String)> =
            page.iter().filter_map(|entry| Some((self.image_id(&entry.key)?, self.message(&entry.key)))).collect();
        report.originals += originals.len() as u64;
        report.foreign += (page.len() - originals.len()) as u64;
        let images: Vec<ImageId> = originals.iter().map(|(image, _)| image.clone()).collect();
        let states = self.store.photos(&images).await?;
        for ((image, message), state) in originals.iter().zip(states) {
            if state.is_some() {
                report.known += 1;
                continue;
            }
            if !dry_run {
                let sent = self.queue.send(message, &format!("backfill/{image}")).await;
                sent.map_err(|error| Failure::new(crate::Cause::Unavailable, error))?;
            }
            report.sent += 1;
        }
        Ok(())
    }

    fn message(&self, key: &str) -> String {
        json!({ "bucketName": self.bucket, "objectKey": key }).to_string()
    }

    fn image_id(&self, key: &str) -> Option<ImageId> {
        match parse_message(&self.message(key), &self.bucket).ok()?.pop()? {
            Request::Photo(photo) => Some(photo.image),
            _ => None,
        }
    }
}
