//! One run of the simulation.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sparks_domain::{Event, ImageId, Level, PhotoProcessed, Policy, Threshold, Timestamp};
use sparks_engine::{Clock, raise_level};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    invariants,
    link::{Conditions, Link, Linked, LinkedStore, Network},
    memory::{MemoryObjects, MemoryPublisher, MemoryQueue, MemoryQueueConfig, MemoryStore, MemoryStoreConfig},
    operator::Operator,
    photo_content::PhotoContent,
    plan::{Plan, Step},
    platform::Platform,
    story::Story,
    worker,
};

/// The visibility timeout of messages.
pub(crate) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time in which a system without faults must settle all messages.
const SETTLE_TIME: Duration = Duration::from_secs(24 * 3600);

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The number of messages delivered to workers.
    pub deliveries: u64,
    /// What does not hold.
    pub violations: Vec<String>,
    /// What happened, if it was asked for.
    pub story: Vec<String>,
}

/// Runs a plan. The same plan always gives the same report.
pub fn run(plan: &Plan, is_told: bool) -> Report {
    fastrand::seed(plan.seed);
    #[allow(clippy::expect_used, reason = "no runtime, no simulation")]
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("runtime");
    runtime.block_on(async {
        // Aligns the paused clock with the millisecond ticks of the timer, so that rounding is always the same.
        sleep(Duration::from_millis(1)).await;
        World::new(plan.clone(), is_told).run().await
    })
}

/// Returns the shortest plan found that still has such a violation, by leaving out steps (delta debugging; A. Zeller,
/// "Simplifying and Isolating Failure-Inducing Input", 2002).
pub fn shrink(plan: &Plan, is_counted: impl Fn(&str) -> bool) -> Plan {
    let fails = |plan: &Plan| run(plan, false).violations.iter().any(|violation| is_counted(violation));
    let mut shortest = plan.clone();
    let mut chunk = shortest.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < shortest.steps.len() {
            let end = (start + chunk).min(shortest.steps.len());
            let shorter = shortest.without(start, end);
            if fails(&shorter) { shortest = shorter } else { start = end }
        }
        chunk /= 2;
    }
    for workers in 1..shortest.workers {
        let smaller = Plan { workers, ..shortest.clone() };
        if fails(&smaller) {
            return smaller;
        }
    }
    shortest
}

/// The services, the actors and the truth of one run.
pub(crate) struct World {
    pub plan: Plan,
    pub story: Story,
    pub clock: VirtualClock,
    pub store: MemoryStore,
    pub objects: MemoryObjects,
    pub queue: MemoryQueue,
    pub publisher: MemoryPublisher,
    pub platform: Platform,
    network: Network,
    /// Whether all workers are of the new release.
    is_upgraded: AtomicBool,
}

impl World {
    fn new(plan: Plan, is_told: bool) -> Arc<Self> {
        let (story, clock) = (Story::new(is_told), VirtualClock(Instant::now()));
        let store = MemoryStore::new(MemoryStoreConfig {
            lanes: plan.lanes,
            index_lag: plan.index_lag,
            half_visible: plan.half_visible,
            max_photos_per_commit: Some(90),
        });
        let objects = MemoryObjects::new(Arc::new(clock.clone()));
        let queue_config = MemoryQueueConfig {
            visibility_timeout: VISIBILITY_TIMEOUT,
            max_crashes: 1000,
            duplicates: plan.duplicates,
            is_unordered: true,
        };
        let queue = MemoryQueue::new(Arc::new(clock.clone()), queue_config);
        let shared_clock = Arc::new(clock.clone()) as Arc<dyn Clock>;
        let platform = Platform::new(store.clone(), objects.clone(), queue.clone(), shared_clock, story.clone());
        let (publisher, network, is_upgraded) =
            (MemoryPublisher::default(), Network::default(), AtomicBool::new(false));
        Arc::new(Self { plan, story, clock, store, objects, queue, publisher, platform, network, is_upgraded })
    }

    async fn run(self: Arc<Self>) -> Report {
        let mut tasks = JoinSet::new();
        let mut workers: Vec<AbortHandle> = (0..self.plan.workers).map(|n| self.start_worker(n, &mut tasks)).collect();
        let mut actors = JoinSet::new();
        for (at, step) in self.plan.steps.clone() {
            sleep(at.saturating_sub(self.story.elapsed())).await;
            match step {
                Step::Kill { worker } => {
                    let worker = worker % workers.len();
                    self.story.tell(|| format!("worker {worker} is killed"));
                    workers[worker].abort();
                    workers[worker] = self.start_worker(worker, &mut tasks);
                }
                Step::Conditions(conditions) => {
                    self.story.tell(|| format!("network: {conditions:?}"));
                    self.network.set(conditions);
                }
                step => drop(actors.spawn(Arc::clone(&self).act(step))),
            }
        }
        self.story.tell(|| "all faults end");
        self.network.set(Conditions::default());
        let is_readable = self.store.events().iter().all(|recorded| recorded.event.level() == Level::FIRST);
        self.is_upgraded.store(true, Ordering::Relaxed);
        for (number, worker) in workers.iter().enumerate().take(self.plan.old_workers) {
            worker.abort();
            self.start_worker(number, &mut tasks);
        }
        // The operator raises the level after the last old worker was upgraded.
        let raised = raise_level(&self.store, Level::MAX, "operator", &self.clock).await;
        while actors.join_next().await.is_some() {}
        let mut violations = match timeout(SETTLE_TIME, self.settle()).await {
            Ok(()) => invariants::violations(&self).await,
            Err(_) => vec![format!("{} messages are never settled", self.queue.len())],
        };
        violations.extend((!is_readable).then(|| "an event above the level of old workers".to_owned()));
        violations.extend(raised.err().map(|error| format!("the level was not raised: {error}")));
        Report { deliveries: self.queue.deliveries(), violations, story: self.story.lines() }
    }

    fn start_worker(self: &Arc<Self>, number: usize, tasks: &mut JoinSet<()>) -> AbortHandle {
        let is_old = number < self.plan.old_workers && !self.is_upgraded.load(Ordering::Relaxed);
        let release = if is_old { "old worker" } else { "worker" };
        tasks.spawn(worker::live(Arc::clone(self), format!("{release} {number}")))
    }

    async fn act(self: Arc<Self>, step: Step) {
        let operator = Operator(&self);
        let done = match step {
            Step::Upload { photo, faces, is_damaged, notice } => {
                self.platform.upload(photo, faces, is_damaged, notice).await;
                Ok(())
            }
            Step::Delete { photo } => {
                self.platform.delete(photo);
                Ok(())
            }
            Step::Remove { photo } => {
                self.platform.remove(photo).await;
                Ok(())
            }
            Step::Redeliver { message } => {
                self.platform.redeliver(message);
                Ok(())
            }
            Step::Merge { identity } => operator.merge(identity).await,
            Step::Unmerge { merge } => operator.unmerge(merge).await,
            Step::Rebuild => operator.rebuild().await,
            Step::Consolidate => operator.consolidate().await,
            Step::Kill { .. } | Step::Conditions(_) => Ok(()),
        };
        if let Err(error) = done {
            self.story.tell(|| format!("operator: {error}"));
        }
    }

    /// Waits until every message is settled, and lets the operator finish what faults interrupted.
    async fn settle(&self) {
        while !self.queue.is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
        sleep(self.plan.index_lag + Duration::from_secs(1)).await;
        if let Err(error) = Operator(self).consolidate().await {
            self.story.tell(|| format!("consolidation failed: {error}"));
        }
    }

    /// Returns each photo that the table shows, with its decision and the content that was decided on.
    pub fn decided_photos(&self) -> Vec<(ImageId, PhotoContent, PhotoProcessed)> {
        let mut last: BTreeMap<ImageId, Option<PhotoProcessed>> = BTreeMap::new();
        for recorded in self.store.events() {
            match recorded.event {
                Event::PhotoProcessed(photo) => drop(last.insert(photo.image_id.clone(), Some(photo))),
                Event::PhotoDeleted(photo) => drop(last.insert(photo.image_id, None)),
                Event::FacesReviewed(review) => {
                    let Some(Some(photo)) = last.get_mut(&review.image_id) else { continue };
                    for face in review.faces {
                        photo.faces[usize::from(face.n - photo.first_face)].verdict = face.verdict;
                    }
                }
                _ => {}
            }
        }
        let photos = last.into_iter().filter_map(|(image, photo)| Some((image, photo?)));
        photos
            .filter_map(|(image, photo)| Some((image, self.platform.content_of(&photo.source.version)?, photo)))
            .collect()
    }

    fn link(&self, client: &str) -> Link {
        let (network, story) = (self.network.clone(), self.story.clone());
        Link { client: client.into(), network, story, slow_call: VISIBILITY_TIMEOUT * 3 }
    }

    pub fn store_for(&self, client: &str) -> LinkedStore {
        let can_read: fn(&Event) -> bool = match client.starts_with("old") {
            true => |event| {
                let is_merge = matches!(event, Event::PersonsMerged(_) | Event::MergeUndone(_));
                event.level() == Level::FIRST && !is_merge
            },
            false => |_| true,
        };
        LinkedStore { inner: self.store.clone(), link: self.link(client), can_read }
    }

    pub fn objects_for(&self, client: &str) -> Linked<MemoryObjects> {
        Linked { inner: self.objects.clone(), link: self.link(client) }
    }

    pub fn queue_for(&self, client: &str) -> Linked<MemoryQueue> {
        Linked { inner: self.queue.clone(), link: self.link(client) }
    }

    pub fn publisher_for(&self, client: &str) -> Linked<MemoryPublisher> {
        Linked { inner: self.publisher.clone(), link: self.link(client) }
    }
}

/// Virtual time since the beginning of the run, on a day of 2026.
#[derive(Clone)]
pub(crate) struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(1_780_000_000_000 + millis)
    }
}

/// Returns the match policy of all workers.
pub(crate) fn policy() -> Policy {
    Policy {
        threshold: Threshold::Fixed(0.6),
        margin: 0.05,
        candidates: 5,
        min_size: 40.0,
        min_sharpness: 0.1,
        min_confidence: 0.6,
        max_turn: 1.0,
    }
}
