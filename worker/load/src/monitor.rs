//! Follows the event log, the queue and the workers during a run.

use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_domain::{Event, ImageId, Position};
use sparks_engine::{Maintenance, Queue};

use super::{GroundTruth, PhotoEvents, ProcessUsage, SendProgress, WorkerPool};

/// The state of a run at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Messages sent.
    pub sent: u64,
    /// Photos decided.
    pub decided: usize,
    /// Visible messages.
    pub waiting: u64,
    /// Messages in flight.
    pub leased: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// The usage of each worker.
    pub usage: Vec<ProcessUsage>,
}

impl Sample {
    /// Returns the number of messages in the queue.
    pub fn queue_depth(&self) -> u64 {
        self.waiting + self.leased + self.delayed
    }

    /// Returns the resident bytes of all workers and their decoder processes.
    pub fn memory(&self) -> u64 {
        self.usage.iter().map(|usage| usage.memory).sum()
    }
}

/// Samples the progress of a run.
pub struct Monitor {
    store: Arc<dyn Maintenance>,
    queue: Arc<dyn Queue>,
    truth: Arc<GroundTruth>,
    send_progress: Arc<SendProgress>,
    /// The worker processes of this run.
    pub workers: WorkerPool,
    position: Position,
    started: Instant,
    events: Vec<PhotoEvents>,
    samples: Vec<Sample>,
    /// Every n-th sample is kept.
    stride: u32,
    taken: u32,
}

/// The reason why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// All photos are decided and the queue is empty.
    Completed,
    /// No progress within the timeout.
    Timeout,
    /// All workers have exited.
    WorkersExited,
}

/// What the monitor waits for.
#[derive(Debug, Clone, Copy)]
pub struct MonitorTarget {
    /// Messages to be sent in total.
    pub messages: u64,
    /// Consecutive samples that must find everything decided and the queue empty; more than one where the depth is an
    /// estimate.
    pub stable_samples: u32,
    /// The wait ends after this time without progress.
    pub timeout: Duration,
}

const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// At this number of samples every second one is dropped; a plot cannot show more.
const MAX_SAMPLES: usize = 1200;
const BATCH_SIZE: usize = 1000;

impl Monitor {
    /// Starts at the current end of the event log; earlier events belong to other runs.
    pub async fn start(
        store: Arc<dyn Maintenance>,
        queue: Arc<dyn Queue>,
        truth: Arc<GroundTruth>,
        send_progress: Arc<SendProgress>,
        workers: WorkerPool,
    ) -> anyhow::Result<Self> {
        let position = store.heads().await?;
        let events = vec![PhotoEvents::default(); truth.photos().len()];
        let started = Instant::now();
        let (samples, stride, taken) = (Vec::new(), 1, 0);
        Ok(Self { store, queue, truth, send_progress, workers, position, started, events, samples, stride, taken })
    }

    /// Samples until every photo is decided and the queue is empty. Calls `on_sample` with each sample.
    pub async fn wait_until_complete(
        &mut self,
        target: MonitorTarget,
        on_sample: impl Fn(&Sample),
    ) -> anyhow::Result<EndReason> {
        let (mut stable, mut best, mut progressed_at) = (0, (0, 0, Reverse(u64::MAX)), Instant::now());
        loop {
            let sample = self.sample().await?;
            on_sample(&sample);
            let is_complete =
                sample.sent == target.messages && sample.decided == self.events.len() && sample.queue_depth() == 0;
            stable = if is_complete { stable + 1 } else { 0 };
            if stable >= target.stable_samples {
                return Ok(EndReason::Completed);
            }
            if self.workers.have_all_exited() {
                return Ok(EndReason::WorkersExited);
            }
            // The queue may hold messages of others, so its depth counts as progress only at a new minimum.
            let reached = (sample.sent, sample.decided, Reverse(sample.queue_depth()));
            if reached > best {
                (progressed_at, best) = (Instant::now(), reached);
            }
            if progressed_at.elapsed() > target.timeout {
                return Ok(EndReason::Timeout);
            }
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
    }

    /// Takes a sample.
    pub async fn sample(&mut self) -> anyhow::Result<Sample> {
        self.read_log().await?;
        let depth = self.queue.depth().await?;
        self.workers.refresh().await;
        let sample = Sample {
            at: self.started.elapsed().as_secs_f64(),
            sent: self.send_progress.messages(),
            decided: self.events.iter().filter(|events| events.decided_at.is_some()).count(),
            waiting: depth.waiting,
            leased: depth.leased,
            delayed: depth.delayed,
            usage: self.workers.usage(),
        };
        self.keep(sample.clone());
        Ok(sample)
    }

    /// Returns the events of each photo so far, by number.
    pub fn events(&self) -> &[PhotoEvents] {
        &self.events
    }

    /// Returns the samples kept.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    fn keep(&mut self, sample: Sample) {
        if self.taken.is_multiple_of(self.stride) {
            self.samples.push(sample);
        }
        self.taken += 1;
        if self.samples.len() >= MAX_SAMPLES {
            let mut n = 0..;
            self.samples.retain(|_| n.next().is_some_and(|n| n % 2 == 0));
            self.stride *= 2;
        }
    }

    async fn read_log(&mut self) -> anyhow::Result<()> {
        loop {
            let events = self.store.read_log(&self.position, BATCH_SIZE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for recorded in &events {
                self.position.advance_past(recorded);
                if let Some(n) = image_of(&recorded.event).and_then(|image| self.truth.number(image)) {
                    self.events[n].apply(recorded);
                }
            }
        }
    }
}

/// Returns the photo that led to the event. `PersonsAllocated` is about persons, but names the photo of their first
/// face.
fn image_of(event: &Event) -> Option<&ImageId> {
    match event {
        Event::PersonsAllocated(event) => Some(&event.image_id),
        event => event.image(),
    }
}
