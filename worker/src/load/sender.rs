//! The platform's part: files, rows and messages, as the plan says.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sparks_domain::Timestamp;
use sparks_engine::{Clock, Content, Platform, Queue, Upload};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, Interval, sleep_until},
};

use super::{Plan, Step, Truth};
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

/// So long after its message comes a row that is late: workers have looked for it by then.
const LATE: Duration = Duration::from_secs(3);
/// Originals that are made at once before anybody is told.
const AT_ONCE: usize = 4;

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
        let mut tasks = JoinSet::new();
        for n in 0..self.truth.photos().len() {
            while tasks.len() >= AT_ONCE {
                tasks.join_next().await.transpose()?.transpose()?;
                progress();
            }
            let sender = self.clone();
            tasks.spawn(async move { sender.store(n).await });
        }
        while let Some(stored) = tasks.join_next().await {
            stored??;
            progress();
        }
        Ok(())
    }

    /// Does everything that is left to do, step by step.
    pub async fn send(&self) -> anyhow::Result<()> {
        let mut ticks = self.rate.map(Rate::ticks);
        let mut late: VecDeque<(Instant, usize)> = VecDeque::new();
        for step in &self.plan.steps {
            while let Some((_, n)) = late.pop_front_if(|(due, _)| *due <= Instant::now()) {
                self.make_row(n).await?;
            }
            match *step {
                Step::Store(_) if !self.bucket_tells || self.teller == Teller::Bucket => {}
                Step::Store(n) => {
                    self.note(n);
                    self.store(n).await?;
                }
                Step::Row(n) => self.make_row(n).await?,
                Step::LateRow(n) => late.push_back((Instant::now() + LATE, n)),
                Step::Tell(n) => {
                    tick(&mut ticks).await;
                    self.tell(n).await?;
                }
                Step::Repeat(n) => {
                    tick(&mut ticks).await;
                    self.repeat(n).await?;
                }
                Step::Reupload(n) => {
                    tick(&mut ticks).await;
                    self.reupload(n).await?;
                }
            }
        }
        for (due, n) in late {
            sleep_until(due).await;
            self.make_row(n).await?;
        }
        Ok(())
    }

    async fn tell(&self, n: usize) -> anyhow::Result<()> {
        let now = self.note(n);
        match self.teller {
            Teller::Bucket => self.store(n).await?,
            Teller::Sender => self.message(n, now, "first").await?,
        }
        self.count();
        Ok(())
    }

    /// The bucket says nothing twice by itself: only who sends messages can.
    async fn repeat(&self, n: usize) -> anyhow::Result<()> {
        let first = self.ledger.lock().told[n].unwrap_or_else(|| self.clock.now());
        self.message(n, first, "repeat").await?;
        self.count();
        Ok(())
    }

    async fn reupload(&self, n: usize) -> anyhow::Result<()> {
        self.store(n).await?;
        if self.teller == Teller::Sender {
            self.message(n, self.clock.now(), "again").await?;
        }
        self.count();
        Ok(())
    }

    async fn store(&self, n: usize) -> anyhow::Result<()> {
        let plan = Arc::clone(&self.plan);
        let file = spawn_blocking(move || {
            let file = plan.album.photo(n).jpeg;
            plan.damage[n].map_or(file.clone(), |damage| damage.done_to(file))
        });
        let file = file.await?;
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

    fn count(&self) {
        self.ledger.lock().messages += 1;
    }
}

async fn tick(ticks: &mut Option<Interval>) {
    if let Some(ticks) = ticks {
        ticks.tick().await;
    }
}
