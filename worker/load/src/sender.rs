//! Uploads files, creates rows and sends messages as the platform does, in the order of the plan.

use std::{collections::HashSet, sync::Arc, time::Duration};

use sparks_domain::Timestamp;
use sparks_engine::{Clock, Content, PlatformClient, Queue, Upload};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::{Instant, Interval, sleep_until},
};

use super::{GroundTruth, PhotoGenerator, Plan, SendProgress, Step, send_progress::StoredOriginal};

/// The origin of the upload notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationSource {
    /// The sender puts messages in the format of S3 on the queue.
    Sender,
    /// The bucket notifies the queue of each upload.
    Bucket,
}

/// Executes the plan.
#[derive(Clone)]
pub struct Sender {
    /// Receives files and rows.
    pub platform: Arc<dyn PlatformClient>,
    /// Receives messages.
    pub queue: Arc<dyn Queue>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The bucket's name.
    pub bucket: String,
    /// The origin of the notifications.
    pub notifications: NotificationSource,
    /// Whether the bucket notifies the queue of every upload, even where the sender sends messages.
    pub bucket_notifies: bool,
    /// The steps.
    pub plan: Arc<Plan>,
    /// The photos.
    pub truth: Arc<GroundTruth>,
    /// What has been done so far.
    pub progress: Arc<SendProgress>,
}

/// The time at which the late row of this photo is created.
type LateRow = (Instant, usize);

/// Delay of a late row after its message; long enough that a worker has looked for the row before.
const LATE_ROW_DELAY: Duration = Duration::from_secs(3);
/// Concurrent uploads; one at a time, the sender would limit the throughput.
const CONCURRENCY: usize = 8;

impl Sender {
    /// Stores all originals ahead of time, unless storing them triggers notifications. Calls `on_stored` for each.
    pub async fn prepare(&self, on_stored: impl Fn()) -> anyhow::Result<()> {
        if self.bucket_notifies {
            return Ok(());
        }
        let mut photos = PhotoGenerator::new(&self.plan, 0..self.truth.photos().len());
        let mut tasks = JoinSet::new();
        while let Some((n, file)) = photos.next().await? {
            while tasks.len() >= CONCURRENCY {
                tasks.join_next().await.transpose()?.transpose()?;
                on_stored();
            }
            let sender = self.clone();
            tasks.spawn(async move { sender.store(n, file).await });
        }
        while let Some(stored) = tasks.join_next().await {
            stored??;
            on_stored();
        }
        Ok(())
    }

    /// Executes all remaining steps, one message per tick of `pace` if there is one.
    pub async fn send(&self, pace: Option<Interval>) -> anyhow::Result<()> {
        let (late, rows) = unbounded_channel();
        tokio::try_join!(self.execute_plan(pace, late), self.create_late_rows(rows))?;
        Ok(())
    }

    /// Executes the message groups in order. Groups of different photos overlap, those of one photo do not.
    async fn execute_plan(&self, mut pace: Option<Interval>, late: UnboundedSender<LateRow>) -> anyhow::Result<()> {
        let uploads = self.plan.message_groups().filter(|group| self.has_upload(group));
        let mut photos = PhotoGenerator::new(&self.plan, uploads.map(|group| group[0].photo()));
        let (mut tasks, mut in_progress) = (JoinSet::new(), HashSet::new());
        for group in self.plan.message_groups() {
            let n = group[0].photo();
            let file = if self.has_upload(group) { photos.next().await?.map(|(_, file)| file) } else { None };
            loop {
                let must_wait = tasks.len() >= CONCURRENCY || in_progress.contains(&n);
                let finished = if must_wait { tasks.join_next().await } else { tasks.try_join_next() };
                let Some(finished) = finished else { break };
                let finished: anyhow::Result<usize> = finished?;
                in_progress.remove(&finished?);
            }
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            in_progress.insert(n);
            let (sender, group, late) = (self.clone(), group.to_vec(), late.clone());
            tasks.spawn(async move { sender.execute_group(&group, file, &late).await.map(|()| n) });
        }
        while let Some(finished) = tasks.join_next().await {
            finished??;
        }
        Ok(())
    }

    /// Creates late rows when they are due.
    async fn create_late_rows(&self, mut late: UnboundedReceiver<LateRow>) -> anyhow::Result<()> {
        while let Some((due, n)) = late.recv().await {
            sleep_until(due).await;
            self.create_row(n).await?;
        }
        Ok(())
    }

    async fn execute_group(
        &self,
        group: &[Step],
        mut file: Option<Vec<u8>>,
        late: &UnboundedSender<LateRow>,
    ) -> anyhow::Result<()> {
        let is_sender = self.notifications == NotificationSource::Sender;
        for step in group.iter().copied() {
            let n = step.photo();
            if let Some(file) = file.take_if(|_| self.is_upload(step)) {
                self.set_notified(n);
                self.store(n, file).await?;
            }
            match step {
                Step::CreateRow(_) => self.create_row(n).await?,
                Step::CreateRowLate(_) => late.send((Instant::now() + LATE_ROW_DELAY, n))?,
                Step::Notify(_) if is_sender => self.send_message(n, self.set_notified(n), "first").await?,
                // A bucket never repeats a notification on demand, so the sender sends the repeat in either mode.
                Step::RepeatNotification(_) => self.send_message(n, self.set_notified(n), "repeat").await?,
                Step::Reupload(_) if is_sender => self.send_message(n, self.clock.now(), "again").await?,
                Step::StoreOriginal(_) | Step::Notify(_) | Step::Reupload(_) => {}
            }
        }
        self.progress.count_message();
        Ok(())
    }

    /// Returns whether the step stores a file. [`Self::prepare`] has stored it already where the bucket does not
    /// notify; where notifications come from the bucket, the upload is the notification.
    fn is_upload(&self, step: Step) -> bool {
        match step {
            Step::StoreOriginal(_) => self.bucket_notifies && self.notifications == NotificationSource::Sender,
            Step::Notify(_) => self.notifications == NotificationSource::Bucket,
            Step::Reupload(_) => true,
            Step::CreateRow(_) | Step::CreateRowLate(_) | Step::RepeatNotification(_) => false,
        }
    }

    fn has_upload(&self, group: &[Step]) -> bool {
        group.iter().any(|step| self.is_upload(*step))
    }

    async fn store(&self, n: usize, file: Vec<u8>) -> anyhow::Result<()> {
        let (key, bytes) = (&self.truth.photos()[n].key, file.len() as u64);
        let version = self.platform.put_original(key, file, Content::image("image/jpeg")).await?;
        self.progress.set_stored(n, StoredOriginal { version, bytes });
        Ok(())
    }

    async fn create_row(&self, n: usize) -> anyhow::Result<()> {
        let (key, row) = self.upload(n, self.clock.now()).row();
        self.platform.create_row(&key, &row).await?;
        Ok(())
    }

    /// Sends a message with a deduplication ID of its own, so that the queue drops none.
    async fn send_message(&self, n: usize, when: Timestamp, which: &str) -> anyhow::Result<()> {
        let upload = self.upload(n, when);
        self.queue.send(&upload.message(), &format!("load/{}/{which}", upload.image)).await?;
        Ok(())
    }

    fn upload(&self, n: usize, when: Timestamp) -> Upload {
        let photo = &self.truth.photos()[n];
        let StoredOriginal { version, bytes } = self.progress.stored(n);
        Upload {
            bucket: self.bucket.clone(),
            image: photo.image.clone(),
            uploader: self.truth.uploader.clone(),
            key: photo.key.clone(),
            version,
            bytes,
            file_name: format!("load-{:04}.jpg", n + 1),
            when,
        }
    }

    fn set_notified(&self, n: usize) -> Timestamp {
        self.progress.set_notified(n, || self.clock.now())
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
