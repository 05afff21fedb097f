//! The platform's part: files, rows and messages, as the plan says.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sparks_domain::Timestamp;
use sparks_engine::{Clock, Content, Platform, Queue, Upload};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Easel, Plan, Step, Truth};
use crate::rate::Rate;

/// Who tells the queue of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    /// We do, in the words of S3.
    Sender,
    /// The bucket does.
    Bucket,
}

/// Uploads everything.
#[derive(Clone)]
pub struct Sender {
    /// Where files and rows go.
    pub platform: Arc<dyn Platform>,
    /// Where messages go.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The bucket's name.
    pub bucket: String,
    /// Who tells of uploads.
    pub teller: Teller,
    /// Whether the bucket tells of everything that is stored in it, whoever else does.
    pub bucket_tells: bool,
    /// How quickly.
    pub rate: Option<Rate>,
    /// What is done.
    pub plan: Arc<Plan>,
    /// What comes of it.
    pub truth: Arc<Truth>,
    /// What has been done.
    pub ledger: Arc<Ledger>,
}

/// What has been done so far.
#[derive(Default)]
pub struct Ledger(Mutex<Done>);

#[derive(Default)]
struct Done {
    stored: Vec<Option<Stored>>,
    told: Vec<Option<Timestamp>>,
    messages: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    version: String,
    bytes: u64,
}

/// When the row of this photo is due.
type Late = (Instant, usize);

/// So long after its message comes a row that is late: workers have looked for it by then.
const LATE: Duration = Duration::from_secs(3);
/// Photos that are under way at once: one by one, the sender would set the pace.
const AT_ONCE: usize = 8;

impl Ledger {
    /// Nothing is done yet about so many photos.
    pub fn new(photos: usize) -> Self {
        Self(Mutex::new(Done { stored: vec![None; photos], told: vec![None; photos], messages: 0 }))
    }

    /// When each photo was first told of.
    pub fn told(&self) -> Vec<Option<Timestamp>> {
        self.lock().told.clone()
    }

    /// How often anything was told.
    pub fn messages(&self) -> u64 {
        self.lock().messages
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    /// Stores all originals, where nobody hears of that. `progress` hears of each.
    pub async fn prepare(&self, progress: impl Fn()) -> anyhow::Result<()> {
        if self.bucket_tells {
            return Ok(());
        }
        let mut easel = Easel::new(&self.plan, 0..self.truth.photos().len());
        let mut tasks = JoinSet::new();
        while let Some((n, file)) = easel.next().await? {
            while tasks.len() >= AT_ONCE {
                tasks.join_next().await.transpose()?.transpose()?;
                progress();
            }
            let sender = self.clone();
            tasks.spawn(async move { sender.store(n, file).await });
        }
        while let Some(stored) = tasks.join_next().await {
            stored??;
            progress();
        }
        Ok(())
    }

    /// Does everything that is left to do.
    pub async fn send(&self) -> anyhow::Result<()> {
        let (late, rows) = unbounded_channel();
        tokio::try_join!(self.take_turns(late), self.make_late_rows(rows))?;
        Ok(())
    }

    /// Begins turn after turn, as quickly as may be. Several photos are under way at once, but no photo twice.
    async fn take_turns(&self, late: UnboundedSender<Late>) -> anyhow::Result<()> {
        let uploads = self.plan.turns().filter(|turn| self.has_upload(turn));
        let mut easel = Easel::new(&self.plan, uploads.map(|turn| turn[0].photo()));
        let mut ticks = self.rate.map(Rate::ticks);
        let (mut tasks, mut busy) = (JoinSet::new(), HashSet::new());
        for turn in self.plan.turns() {
            let n = turn[0].photo();
            let file = if self.has_upload(turn) { easel.next().await?.map(|(_, file)| file) } else { None };
            loop {
                let must_wait = tasks.len() >= AT_ONCE || busy.contains(&n);
                let ended = if must_wait { tasks.join_next().await } else { tasks.try_join_next() };
                let Some(ended) = ended else { break };
                let ended: anyhow::Result<usize> = ended?;
                busy.remove(&ended?);
            }
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            busy.insert(n);
            let (sender, turn, late) = (self.clone(), turn.to_vec(), late.clone());
            tasks.spawn(async move { sender.take(&turn, file, &late).await.map(|()| n) });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Makes rows when they are due, until nobody is left who is late.
    async fn make_late_rows(&self, mut late: UnboundedReceiver<Late>) -> anyhow::Result<()> {
        while let Some((due, n)) = late.recv().await {
            sleep_until(due).await;
            self.make_row(n).await?;
        }
        Ok(())
    }

    /// Takes a turn, step by step.
    async fn take(&self, turn: &[Step], mut file: Option<Vec<u8>>, late: &UnboundedSender<Late>) -> anyhow::Result<()> {
        for step in turn.iter().copied() {
            let n = step.photo();
            if let Some(file) = file.take_if(|_| self.is_upload(step)) {
                self.note(n);
                self.store(n, file).await?;
            }
            match step {
                Step::Row(_) => self.make_row(n).await?,
                Step::LateRow(_) => late.send((Instant::now() + LATE, n))?,
                Step::Tell(_) if self.teller == Teller::Sender => self.message(n, self.note(n), "first").await?,
                // The bucket says nothing twice by itself: only who sends messages can.
                Step::Repeat(_) => self.message(n, self.note(n), "repeat").await?,
                Step::Reupload(_) if self.teller == Teller::Sender => {
                    self.message(n, self.clock.now(), "again").await?;
                }
                Step::Store(_) | Step::Tell(_) | Step::Reupload(_) => {}
            }
        }
        self.ledger.lock().messages += 1;
        Ok(())
    }

    /// Whether a file is stored with this step: not if it is there already, nor before the bucket is to tell of it.
    fn is_upload(&self, step: Step) -> bool {
        match step {
            Step::Store(_) => self.bucket_tells && self.teller == Teller::Sender,
            Step::Tell(_) => self.teller == Teller::Bucket,
            Step::Reupload(_) => true,
            Step::Row(_) | Step::LateRow(_) | Step::Repeat(_) => false,
        }
    }

    fn has_upload(&self, turn: &[Step]) -> bool {
        turn.iter().any(|step| self.is_upload(*step))
    }

    async fn store(&self, n: usize, file: Vec<u8>) -> anyhow::Result<()> {
        let (key, bytes) = (&self.truth.photos()[n].key, file.len() as u64);
        let version = self.platform.store(key, file, Content::picture("image/jpeg")).await?;
        self.ledger.lock().stored[n] = Some(Stored { version, bytes });
        Ok(())
    }

    async fn make_row(&self, n: usize) -> anyhow::Result<()> {
        let (key, row) = self.upload(n, self.clock.now()).row();
        self.platform.make_row(&key, &row).await?;
        Ok(())
    }

    /// Every message has a name of its own, so that none is taken for another.
    async fn message(&self, n: usize, when: Timestamp, which: &str) -> anyhow::Result<()> {
        let upload = self.upload(n, when);
        self.queue.send(&upload.message(), &format!("load/{}/{which}", upload.image)).await?;
        Ok(())
    }

    fn upload(&self, n: usize, when: Timestamp) -> Upload {
        let made = &self.truth.photos()[n];
        let stored = self.ledger.lock().stored[n].clone();
        let (version, bytes) = stored.map(|stored| (stored.version, stored.bytes)).unwrap_or_default();
        Upload {
            bucket: self.bucket.clone(),
            image: made.image.clone(),
            uploader: self.truth.uploader.clone(),
            key: made.key.clone(),
            version,
            bytes,
            file_name: format!("load-{:04}.jpg", n + 1),
            when,
        }
    }

    /// The photo is told of now, if it was not before.
    fn note(&self, n: usize) -> Timestamp {
        *self.ledger.lock().told[n].get_or_insert_with(|| self.clock.now())
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
