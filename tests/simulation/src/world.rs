//! One run of the simulation.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sparks_domain::{Email, Event, ImageId, Level, PhotoProcessed, Policy, ProfileProcessed, Threshold, Timestamp};
use sparks_engine::{Clock, raise_level};
use tokio::{
    task::{AbortHandle, JoinSet, LocalSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    audit::Audit,
    face_service::FaceService,
    features::Features,
    invariants,
    link::{Conditions, Link, Linked, LinkedStore, Network, Service},
    memory::{
        CommitObserver, MemoryObjects, MemoryPublisher, MemoryQueue, MemoryQueueConfig, MemoryStore, MemoryStoreConfig,
    },
    operator::Operator,
    photo_content::PhotoContent,
    plan::{Plan, Step},
    platform::Platform,
    profile::ProfileNotice,
    story::Story,
    worker,
};

/// The visibility timeout of messages.
pub(crate) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time until a search at the face service notices a change.
const FACE_SERVICE_LAG: Duration = Duration::from_secs(10);
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
    /// Contention between workers.
    pub contention: Contention,
}

/// How much workers got in each other's way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contention {
    /// The number of transactions that were accepted.
    pub commits: u64,
    /// The number of transactions that were refused because another worker allocated or changed persons.
    pub identity_conflicts: u64,
    /// The number of transactions that were refused because another worker committed the photo.
    pub photo_conflicts: u64,
    /// The number of persons that were allocated.
    pub new_persons: u64,
    /// The time until every message was settled.
    pub drained: Duration,
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
        LocalSet::new().run_until(World::new(plan.clone(), is_told).run()).await
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
    let features = shortest.features;
    for simpler in [
        Features { clock_skew: Duration::ZERO, ..features },
        Features { has_whole_seconds: false, ..features },
        Features { face_service: None, ..features },
    ] {
        let simpler = Plan { features: simpler, ..shortest.clone() };
        if simpler.features != shortest.features && fails(&simpler) {
            shortest = simpler;
        }
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
    pub faces: Option<FaceService>,
    pub audit: Arc<Audit>,
    /// The number of messages that workers process, those whose lease they have lost among them.
    pub in_flight: Arc<AtomicUsize>,
    /// Held by an operator who decides all photos again.
    redecision: tokio::sync::Mutex<()>,
    is_redecision_incomplete: AtomicBool,
}

impl World {
    fn new(plan: Plan, is_told: bool) -> Arc<Self> {
        let (story, clock) = (Story::new(is_told), VirtualClock::new());
        let store = MemoryStore::new(MemoryStoreConfig {
            lanes: plan.lanes,
            index_lag: plan.index_lag,
            half_visible: plan.half_visible,
            max_photos_per_commit: Some(90),
        });
        let audit = Arc::new(Audit::default());
        let store = store.observed_by(Arc::clone(&audit) as Arc<dyn CommitObserver>);
        let objects = MemoryObjects::new(Arc::new(clock.clone()));
        let objects = objects.with_whole_seconds(plan.features.has_whole_seconds);
        let queue_config = MemoryQueueConfig {
            visibility_timeout: VISIBILITY_TIMEOUT,
            max_crashes: 1000,
            duplicates: plan.duplicates,
            is_unordered: true,
        };
        let queue = MemoryQueue::new(Arc::new(clock.clone()), queue_config);
        let shared_clock = Arc::new(clock.clone()) as Arc<dyn Clock>;
        let platform = Platform::new(
            store.clone(),
            objects.clone(),
            queue.clone(),
            shared_clock,
            story.clone(),
            Arc::clone(&audit),
        );
        let faces = plan.features.face_service.map(|kind| FaceService::new(kind, FACE_SERVICE_LAG));
        Arc::new(Self {
            plan,
            story,
            clock,
            store,
            objects,
            queue,
            publisher: MemoryPublisher::default(),
            platform,
            network: Network::default(),
            is_upgraded: AtomicBool::new(false),
            faces,
            audit,
            in_flight: Arc::default(),
            redecision: tokio::sync::Mutex::default(),
            is_redecision_incomplete: AtomicBool::new(false),
        })
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
                    self.network.set_all(conditions);
                }
                Step::ServiceConditions(service, conditions) => {
                    self.story.tell(|| format!("network of {service:?}: {conditions:?}"));
                    self.network.set(service, conditions);
                }
                // Its future cannot be sent to another thread.
                Step::Redecide { killed_after } => {
                    actors.spawn_local(Arc::clone(&self).redecide(killed_after));
                }
                step => drop(actors.spawn(Arc::clone(&self).act(step))),
            }
        }
        self.story.tell(|| "all faults end");
        self.network.set_all(Conditions::default());
        let is_readable = self.store.events().iter().all(|recorded| recorded.event.level() == Level::FIRST);
        self.is_upgraded.store(true, Ordering::Relaxed);
        for (number, worker) in workers.iter().enumerate().take(self.plan.old_workers) {
            worker.abort();
            self.start_worker(number, &mut tasks);
        }
        // The operator raises the level after the last old worker was upgraded.
        let raised = raise_level(&self.store, Level::MAX, "operator", &self.clock).await;
        while actors.join_next().await.is_some() {}
        let (mut violations, drained) = match timeout(SETTLE_TIME, self.settle()).await {
            Ok(drained) => (invariants::violations(&self).await, drained),
            Err(_) => (vec![format!("{} messages are never settled", self.queue.len())], SETTLE_TIME),
        };
        violations.extend((!is_readable).then(|| "an event above the level of old workers".to_owned()));
        violations.extend(raised.err().map(|error| format!("the level was not raised: {error}")));
        let contention = Contention { drained, ..self.audit.contention() };
        Report { deliveries: self.queue.deliveries(), violations, story: self.story.lines(), contention }
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
            Step::Profile { user, face, is_damaged, is_object_event, delay } => {
                self.platform.change_profile(user, face, is_damaged, ProfileNotice { is_object_event, delay }).await;
                Ok(())
            }
            Step::Kill { .. } | Step::Conditions(_) | Step::ServiceConditions(..) | Step::Redecide { .. } => Ok(()),
        };
        if let Err(error) = done {
            self.story.tell(|| format!("operator: {error}"));
        }
    }

    /// Decides all photos again. A run that is killed or fails is repeated once all messages are settled.
    async fn redecide(self: Arc<Self>, killed_after: Option<Duration>) {
        let _one_at_a_time = self.redecision.lock().await;
        self.story.tell(|| "operator: redecides");
        let done = timeout(killed_after.unwrap_or(SETTLE_TIME), Operator(&self).redecide()).await;
        self.story.tell(|| format!("operator: redecided: {done:?}"));
        let is_complete = matches!(done, Ok(Ok(())));
        self.is_redecision_incomplete.store(!is_complete, Ordering::Relaxed);
    }

    /// Waits until every message is settled and no worker processes one whose lease it has lost, and lets the operator finish what
    /// faults interrupted. Returns the time when all were settled.
    async fn settle(self: &Arc<Self>) -> Duration {
        while !self.queue.is_empty() || self.in_flight.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_secs(1)).await;
        }
        let drained = self.story.elapsed();
        sleep(self.plan.index_lag + self.plan.features.clock_skew * 2 + Duration::from_secs(1)).await;
        if self.is_redecision_incomplete.load(Ordering::Relaxed) {
            Arc::clone(self).redecide(None).await;
            sleep(self.plan.index_lag + self.plan.features.clock_skew * 2 + Duration::from_secs(1)).await;
        }
        if let Err(error) = Operator(self).consolidate().await {
            self.story.tell(|| format!("consolidation failed: {error}"));
        }
        drained
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
                    for reviewed in review.faces {
                        let position = reviewed.n.checked_sub(photo.first_face).map(usize::from);
                        if let Some(face) = position.and_then(|position| photo.faces.get_mut(position)) {
                            face.verdict = reviewed.verdict;
                        }
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

    /// Returns the last decision about each user that identifies a person.
    pub fn decided_profiles(&self) -> BTreeMap<Email, ProfileProcessed> {
        self.last_profiles(|profile| profile.person().is_some())
    }

    /// Returns the last such decision about each user.
    pub fn last_profiles(&self, is_such: impl Fn(&ProfileProcessed) -> bool) -> BTreeMap<Email, ProfileProcessed> {
        let profiles = self.store.events().into_iter().filter_map(|recorded| match recorded.event {
            Event::ProfileProcessed(profile) if is_such(&profile) => Some((profile.email.clone(), profile)),
            _ => None,
        });
        profiles.collect()
    }

    pub fn link(&self, client: &str, service: Service) -> Link {
        let (network, story) = (self.network.clone(), self.story.clone());
        Link { client: client.into(), service, network, story, slow_call: VISIBILITY_TIMEOUT * 3 }
    }

    /// Returns the clock of a machine on which a process starts.
    pub fn clock_of_machine(&self) -> Arc<VirtualClock> {
        let most = i64::try_from(self.plan.features.clock_skew.as_millis()).unwrap_or_default();
        let skew = if most == 0 { 0 } else { fastrand::i64(-most..=most) };
        Arc::new(VirtualClock { skew, ..self.clock.clone() })
    }

    pub fn store_for(&self, client: &str) -> LinkedStore {
        let can_read: fn(&Event) -> bool = match client.starts_with("old") {
            true => |event| {
                let is_merge = matches!(event, Event::PersonsMerged(_) | Event::MergeUndone(_));
                event.level() == Level::FIRST && !is_merge
            },
            false => |_| true,
        };
        LinkedStore { inner: self.store.clone(), link: self.link(client, Service::Store), can_read }
    }

    pub fn objects_for(&self, client: &str) -> Linked<MemoryObjects> {
        Linked { inner: self.objects.clone(), link: self.link(client, Service::Objects) }
    }

    pub fn queue_for(&self, client: &str) -> Linked<MemoryQueue> {
        Linked { inner: self.queue.clone(), link: self.link(client, Service::Queue) }
    }

    pub fn faces_for(&self, client: &str) -> Option<Linked<FaceService>> {
        Some(Linked { inner: self.faces.clone()?, link: self.link(client, Service::Faces) })
    }

    pub fn publisher_for(&self, client: &str) -> Linked<MemoryPublisher> {
        Linked { inner: self.publisher.clone(), link: self.link(client, Service::Publisher) }
    }
}

/// Virtual time since the beginning of the run, on a day of 2026.
#[derive(Clone)]
pub(crate) struct VirtualClock {
    started: Instant,
    /// The error of this clock in milliseconds.
    skew: i64,
}

impl VirtualClock {
    fn new() -> Self {
        Self { started: Instant::now(), skew: 0 }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(1_780_000_000_000 + millis + self.skew)
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
