//! Originals that nobody ever sent a message about.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{ImageId, Timestamp};

use crate::{Failure, Listed, Maintenance, Objects, Queue, Request, understand};

/// Looks through the bucket for originals that the log does not know, and sends what the platform would have sent.
pub struct Backfill {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// The log.
    pub store: Arc<dyn Maintenance>,
    /// Where the messages go.
    pub queue: Arc<dyn Queue>,
    /// The bucket's name.
    pub bucket: String,
}

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backfilled {
    /// Originals in the bucket, as far as they are recent enough.
    pub originals: u64,
    /// Those the log knows.
    pub known: u64,
    /// Those it does not, for which there is a message now.
    pub sent: u64,
    /// Objects under `originals/` that are not called like one.
    pub strange: u64,
}

/// Large, because a bucket that is a folder is walked anew for each.
const PAGE: usize = 10_000;

impl Backfill {
    /// Goes once through the bucket. Safe to interrupt and to repeat: a message that still stands is not sent twice, and one
    /// that was worked off is in the log. With `dry_run` nothing is sent.
    pub async fn run(
        &self,
        since: Option<Timestamp>,
        dry_run: bool,
        progress: impl Fn(u64),
    ) -> Result<Backfilled, Failure> {
        let mut found = Backfilled::default();
        let mut after: Option<String> = None;
        loop {
            let page = self.objects.list("originals/", after.as_deref(), PAGE).await?;
            let Some(last) = page.last().map(|listed| listed.key.clone()) else { return Ok(found) };
            let recent = page.into_iter().filter(|listed| since.is_none_or(|since| listed.modified >= since));
            self.page(recent.collect(), dry_run, &mut found).await?;
            progress(found.originals);
            after = Some(last);
        }
    }

    async fn page(&self, page: Vec<Listed>, dry_run: bool, found: &mut Backfilled) -> Result<(), Failure> {
        let originals: Vec<(ImageId, String)> =
            page.iter().filter_map(|listed| Some((self.image(&listed.key)?, self.body(&listed.key)))).collect();
        found.originals += originals.len() as u64;
        found.strange += (page.len() - originals.len()) as u64;
        let images: Vec<ImageId> = originals.iter().map(|(image, _)| image.clone()).collect();
        let states = self.store.photos(&images).await?;
        for ((image, body), state) in originals.iter().zip(states) {
            if state.is_some() {
                found.known += 1;
                continue;
            }
            if !dry_run {
                let sent = self.queue.send(body, &format!("backfill/{image}")).await;
                sent.map_err(|error| Failure::new(crate::Cause::Unavailable, error))?;
            }
            found.sent += 1;
        }
        Ok(())
    }

    fn body(&self, key: &str) -> String {
        json!({ "bucketName": self.bucket, "objectKey": key }).to_string()
    }

    fn image(&self, key: &str) -> Option<ImageId> {
        match understand(&self.body(key), &self.bucket).ok()?.pop()? {
            Request::Photo(photo) => Some(photo.image),
            _ => None,
        }
    }
}
