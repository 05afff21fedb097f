//! What is seen while the work is done.

use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_domain::{Event, ImageId, PersonId, Position, Recorded, Timestamp};
use sparks_engine::{Maintenance, Queue};

use super::{Fleet, Ledger, Truth, usage::Usage};

/// What the log says of a photo of ours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logged {
    /// How often it was processed.
    pub processed: u32,
    /// How often it was rejected.
    pub rejected: u32,
    /// When it was first decided.
    pub decided: Option<Timestamp>,
    /// Who its faces were decided to be, before anybody was joined.
    pub faces: Vec<Option<PersonId>>,
    /// Who was founded with it.
    pub founded: Vec<PersonId>,
}

/// How things were at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Messages sent.
    pub told: u64,
    /// Photos decided.
    pub settled: usize,
    /// Messages that anybody may take.
    pub waiting: u64,
    /// Messages in work.
    pub leased: u64,
    /// Messages for later.
    pub delayed: u64,
    /// What each worker has taken.
    pub usage: Vec<Usage>,
}

impl Sample {
    /// Messages that are not settled.
    pub fn left(&self) -> u64 {
        self.waiting + self.leased + self.delayed
    }
}

/// Follows the log and everybody who works.
pub struct Watch {
    store: Arc<dyn Maintenance>,
    queue: Arc<dyn Queue>,
    truth: Arc<Truth>,
    ledger: Arc<Ledger>,
    /// Our own workers.
    pub fleet: Fleet,
    position: Position,
    started: Instant,
    logged: Vec<Logged>,
    samples: Vec<Sample>,
    stride: u32,
    looks: u32,
}

/// How the waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything is settled.
    Settled,
    /// Nothing has happened for too long.
    Stuck,
    /// All workers have ended.
    Deserted,
}

/// How often to look.
const LOOK: Duration = Duration::from_millis(500);
/// More moments than a plot has room for are thinned out.
const MOST_SAMPLES: usize = 1200;
const BATCH: usize = 1000;

impl Watch {
    /// Watches from now on: what is in the log already is not of this run.
    pub async fn start(
        store: Arc<dyn Maintenance>,
        queue: Arc<dyn Queue>,
        truth: Arc<Truth>,
        ledger: Arc<Ledger>,
        fleet: Fleet,
    ) -> anyhow::Result<Self> {
        let position = store.heads().await?;
        let logged = vec![Logged::default(); truth.photos().len()];
        let started = Instant::now();
        let (samples, stride, looks) = (Vec::new(), 1, 0);
        Ok(Self { store, queue, truth, ledger, fleet, position, started, logged, samples, stride, looks })
    }

    /// Looks until every photo is decided and the queue is empty. `quiet` looks in a row must find it so, because queues of
    /// the cloud only estimate.
    pub async fn until_settled(
        &mut self,
        quiet: u32,
        patience: Duration,
        messages: u64,
        progress: impl Fn(&Sample),
    ) -> anyhow::Result<Ended> {
        let (mut empty, mut best, mut moved) = (0, (0, 0, Reverse(u64::MAX)), Instant::now());
        loop {
            let sample = self.look().await?;
            progress(&sample);
            let is_done = sample.told == messages && sample.settled == self.logged.len() && sample.left() == 0;
            empty = if is_done { empty + 1 } else { 0 };
            if empty >= quiet {
                return Ok(Ended::Settled);
            }
            if self.fleet.is_dead() {
                return Ok(Ended::Deserted);
            }
            // Messages of others come and go: only fewer than ever before are a step ahead.
            let reached = (sample.told, sample.settled, Reverse(sample.left()));
            if reached > best {
                (moved, best) = (Instant::now(), reached);
            }
            if moved.elapsed() > patience {
                return Ok(Ended::Stuck);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// One look at everything.
    pub async fn look(&mut self) -> anyhow::Result<Sample> {
        self.read_log().await?;
        let depth = self.queue.depth().await?;
        self.fleet.look().await;
        let sample = Sample {
            at: self.started.elapsed().as_secs_f64(),
            told: self.ledger.messages(),
            settled: self.logged.iter().filter(|logged| logged.decided.is_some()).count(),
            waiting: depth.waiting,
            leased: depth.leased,
            delayed: depth.delayed,
            usage: self.fleet.usage(),
        };
        self.keep(sample.clone());
        Ok(sample)
    }

    /// What the log says of each photo so far, by number.
    pub fn logged(&self) -> &[Logged] {
        &self.logged
    }

    /// All moments that were kept.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    fn keep(&mut self, sample: Sample) {
        if self.looks.is_multiple_of(self.stride) {
            self.samples.push(sample);
        }
        self.looks += 1;
        if self.samples.len() >= MOST_SAMPLES {
            let mut n = 0..;
            self.samples.retain(|_| n.next().is_some_and(|n| n % 2 == 0));
            self.stride *= 2;
        }
    }

    async fn read_log(&mut self) -> anyhow::Result<()> {
        loop {
            let events = self.store.read_log(&self.position, BATCH).await?;
            if events.is_empty() {
                return Ok(());
            }
            for recorded in &events {
                self.position.pass_event(recorded);
                if let Some(n) = photo(&recorded.event).and_then(|image| self.truth.number(image)) {
                    self.logged[n].note(recorded);
                }
            }
        }
    }
}

impl Logged {
    /// One event more.
    pub fn note(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::PhotoProcessed(event) => {
                self.processed += 1;
                self.faces = event.faces.iter().map(|face| face.verdict.person()).collect();
            }
            Event::PhotoRejected(_) => self.rejected += 1,
            Event::PersonsAllocated(event) => {
                self.founded.extend(event.persons.iter().map(|allocation| allocation.person));
                return;
            }
            Event::FacesReviewed(event) => {
                for face in &event.faces {
                    if let Some(known) = self.faces.get_mut(usize::from(face.n)) {
                        *known = known.or(face.verdict.person());
                    }
                }
                return;
            }
            _ => return,
        }
        self.decided.get_or_insert(recorded.when);
    }
}

/// The photo that an event came of: strangers are founded with one.
fn photo(event: &Event) -> Option<&ImageId> {
    match event {
        Event::PersonsAllocated(event) => Some(&event.image_id),
        event => event.image(),
    }
}
