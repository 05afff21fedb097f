//! Fault injection: port decorators that record every call and fail at a chosen one.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sparks_domain::{Event, FaceId, ImageId, Item, Key, PersonId, PhotoState, Position, RecordedEvent, Seq};
use sparks_engine::{
    Checkpoint, Commit, CommitError, Content, DecidedFace, Delivery, DependencyError, Fingerprint, IdentityTail,
    Maintenance, MessageId, Notification, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, Page, PublishError,
    Publisher, PutMode, Query, Queue, QueueDepth, QueueError, RepairGroup, RepairReport, Settlement, Store, StoreError,
    StoredFace, TemplateScope, Templates,
};

/// One injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The number of the failing call, from 1.
    pub call: usize,
    /// Whether the call takes effect before it fails.
    pub timing: FaultTiming,
    /// Whether the calls after it fail too.
    pub kind: FaultKind,
}

/// Whether a failing call takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTiming {
    /// The call has no effect.
    BeforeCall,
    /// The call takes effect, and the caller gets an error.
    AfterCall,
}

/// What happens to the calls after the failing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// All of them fail, as after the death of the process.
    Crash,
    /// They succeed, as after a short outage.
    Outage,
}

/// The recorded calls of all ports of one process, and the fault or interruption to inject.
#[derive(Default)]
pub struct FaultPlan {
    fault: Option<Fault>,
    calls: Mutex<Vec<String>>,
    called: tokio::sync::Notify,
    interruptions: Mutex<Vec<(InterruptionPoint, Interruption)>>,
    /// Held while interruptions run: calls that are made concurrently wait.
    interrupting: tokio::sync::Mutex<()>,
}

/// The call before which an interruption runs.
enum InterruptionPoint {
    CallNamed(String),
    CallNumber(usize),
}

/// An action of another process that runs between two calls.
pub type Interruption = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A port whose calls go through a fault plan. A store refuses transactions that are too large for DynamoDB.
pub struct FaultyPort<P: ?Sized> {
    inner: Arc<P>,
    plan: Arc<FaultPlan>,
}

const INJECTED: &str = "injected fault";

impl FaultPlan {
    /// Records calls and injects nothing.
    pub fn without_faults() -> Arc<Self> {
        Arc::default()
    }

    /// Injects this fault.
    pub fn at(fault: Fault) -> Arc<Self> {
        Arc::new(Self { fault: Some(fault), ..Self::default() })
    }

    /// Runs an interruption right before the first call with this name.
    pub fn interrupting_call_named(call: &str, interruption: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Self::with_interruptions(vec![(InterruptionPoint::CallNamed(call.to_owned()), Box::pin(interruption))])
    }

    /// Runs an interruption right before the call with this number, from 1.
    pub fn interrupting_call_number(call: usize, interruption: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Self::interrupting_calls(vec![(call, Box::pin(interruption))])
    }

    /// Runs each interruption right before the call with its number, from 1; those of one call in this order.
    pub fn interrupting_calls(interruptions: Vec<(usize, Interruption)>) -> Arc<Self> {
        let numbered = interruptions.into_iter().map(|(call, action)| (InterruptionPoint::CallNumber(call), action));
        Self::with_interruptions(numbered.collect())
    }

    fn with_interruptions(interruptions: Vec<(InterruptionPoint, Interruption)>) -> Arc<Self> {
        Arc::new(Self { interruptions: Mutex::new(interruptions), ..Self::default() })
    }

    /// Returns whether all interruptions have run.
    pub fn has_interruption_run(&self) -> bool {
        self.interruptions.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the interruptions whose calls were not made.
    pub fn left_interruptions(&self) -> Vec<Interruption> {
        let left = std::mem::take(&mut *self.interruptions.lock().unwrap_or_else(PoisonError::into_inner));
        left.into_iter().map(|(_, interruption)| interruption).collect()
    }

    fn interruption_before(&self, name: &str) -> Option<Interruption> {
        let mut interruptions = self.interruptions.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.calls().len() + 1;
        let is_now = |point: &InterruptionPoint| match point {
            InterruptionPoint::CallNamed(call) => call == name,
            InterruptionPoint::CallNumber(call) => *call == next,
        };
        let position = interruptions.iter().position(|(point, _)| is_now(point))?;
        Some(interruptions.remove(position).1)
    }

    /// Returns the names of the calls so far, such as `objects.put persons/person1.jpg`.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the process is dead: the fault is a crash and has been injected.
    pub fn has_crashed(&self) -> bool {
        self.has_fired() && self.fault.is_some_and(|fault| fault.kind == FaultKind::Crash)
    }

    /// Waits until the process is dead.
    pub async fn crashed(&self) {
        while !self.has_crashed() {
            self.called.notified().await;
        }
    }

    /// Returns whether the fault has been injected.
    pub fn has_fired(&self) -> bool {
        self.fault.is_some_and(|fault| self.calls().len() >= fault.call)
    }

    /// Wraps a port so that its calls go through this plan.
    pub fn wrap<P: ?Sized>(self: &Arc<Self>, inner: Arc<P>) -> Arc<FaultyPort<P>> {
        Arc::new(FaultyPort { inner, plan: Arc::clone(self) })
    }

    fn record(&self, name: String) -> Option<FaultTiming> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(name);
        self.called.notify_one();
        let fault = self.fault?;
        match fault.kind {
            _ if calls.len() == fault.call => Some(fault.timing),
            FaultKind::Crash if calls.len() > fault.call => Some(FaultTiming::BeforeCall),
            _ => None,
        }
    }
}

impl<P: ?Sized> FaultyPort<P> {
    async fn pass<T, E>(
        &self,
        name: impl Into<String> + Send,
        call: impl Future<Output = Result<T, E>> + Send,
        fault: impl FnOnce() -> E + Send,
    ) -> Result<T, E> {
        let name = name.into();
        {
            let _exclusive = self.plan.interrupting.lock().await;
            while let Some(interruption) = self.plan.interruption_before(&name) {
                interruption.await;
            }
        }
        match self.plan.record(name) {
            None => call.await,
            Some(FaultTiming::BeforeCall) => Err(fault()),
            Some(FaultTiming::AfterCall) => {
                let _discarded = call.await;
                Err(fault())
            }
        }
    }
}

/// The largest number of actions in a DynamoDB transaction.
const MAX_ACTIONS: usize = 100;

/// Returns the number of actions of a DynamoDB transaction that cannot be written after it: events, lane heads, the photo's state, the
/// counter of persons, rows that must exist, and one item with faces for each photo.
fn fixed_actions(commit: &Commit) -> usize {
    let has_identity = commit.identity.is_some() || commit.events.iter().any(Event::is_identity);
    let has_photo = commit.events.iter().any(|event| !event.is_identity());
    let erased = commit.erased.photos.iter().chain(commit.erased.faces.iter().map(|face| &face.image));
    let changed = commit.identified.iter().map(|(face, _)| &face.image).chain(commit.promoted.iter().map(|f| &f.image));
    let stored = commit.signatures.iter().map(|stored| &stored.face.image);
    let items: BTreeSet<&ImageId> = erased.chain(changed).chain(stored).collect();
    let conditions = [has_identity, has_photo, commit.photo.is_some(), commit.identity.is_some()];
    let rows = commit.mutations.iter().filter(|mutation| mutation.requires_row()).count();
    commit.events.len() + conditions.into_iter().filter(|is_needed| *is_needed).count() + items.len() + rows
}

fn store_error() -> StoreError {
    StoreError::Dependency(DependencyError::Unavailable(INJECTED.into()))
}

fn queue_error() -> QueueError {
    QueueError::Dependency(DependencyError::Unavailable(INJECTED.into()))
}

fn objects_error(key: &str) -> ObjectsError {
    ObjectsError::Dependency { key: key.to_owned(), error: DependencyError::Unavailable(INJECTED.into()) }
}

#[async_trait]
impl<P: Store + ?Sized> Store for FaultyPort<P> {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let actions = fixed_actions(commit);
        if actions > MAX_ACTIONS {
            let reason = format!("ValidationException: {actions} actions in one transaction");
            return Err(StoreError::Unreadable(reason).into());
        }
        self.pass("store.commit", self.inner.commit(commit), || store_error().into()).await
    }

    fn has_serial_commits(&self) -> bool {
        self.inner.has_serial_commits()
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.pass("store.photo", self.inner.photo(image), store_error).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.pass("store.identity", self.inner.identity(after), store_error).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        self.pass("store.read_log", self.inner.read_log(after, most), store_error).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        self.pass("store.event", self.inner.event(image, seq), store_error).await
    }

    async fn templates(&self, after: &Position, reach: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        self.pass("store.templates", self.inner.templates(after, reach, most), store_error).await
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.pass("store.signatures", self.inner.signatures(faces), store_error).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.pass("store.faces_of", self.inner.faces_of(persons), store_error).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.pass("store.check", self.inner.check(), store_error).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.pass("store.get", self.inner.get(key), store_error).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.pass("store.batch_get", self.inner.batch_get(keys), store_error).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        self.pass("store.query", self.inner.query(query), store_error).await
    }
}

#[async_trait]
impl<P: Maintenance + ?Sized> Maintenance for FaultyPort<P> {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.pass("store.heads", self.inner.heads(), store_error).await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.pass("store.scan", self.inner.scan(after, most), store_error).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.pass("store.photos", self.inner.photos(images), store_error).await
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        self.pass("store.repair", self.inner.repair(groups, write), store_error).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        self.pass("store.unidentified", self.inner.unidentified(after, most), store_error).await
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        self.pass("store.co_occurrences", self.inner.co_occurrences(of), store_error).await
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        self.pass("store.checkpoint", self.inner.checkpoint(checkpoint), store_error).await
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        self.pass("store.set_checkpoint", self.inner.set_checkpoint(checkpoint, position), store_error).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.pass("store.fingerprint", self.inner.fingerprint(), store_error).await
    }
}

#[async_trait]
impl Objects for FaultyPort<dyn Objects> {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        self.pass(format!("objects.get {key}"), self.inner.get(key, most_bytes), || objects_error(key)).await
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        let call = self.inner.put(key, body, content, mode);
        self.pass(format!("objects.put {key}"), call, || objects_error(key)).await
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        self.pass(format!("objects.delete {key}"), self.inner.delete(key), || objects_error(key)).await
    }

    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        let deleted = self.inner.delete_version(key, version);
        self.pass(format!("objects.delete_version {key}"), deleted, || objects_error(key)).await
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        self.pass(format!("objects.head {key}"), self.inner.head(key), || objects_error(key)).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        let call = self.inner.list(prefix, after, most);
        self.pass(format!("objects.list {prefix}"), call, || objects_error(prefix)).await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.pass("objects.check", self.inner.check(), || objects_error("check")).await
    }
}

#[async_trait]
impl Queue for FaultyPort<dyn Queue> {
    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        self.pass("queue.send", self.inner.send(body, deduplication), queue_error).await
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        self.pass("queue.receive", self.inner.receive(most), queue_error).await
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        self.pass("queue.extend", self.inner.extend(delivery), queue_error).await
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let name = match &settlement {
            Settlement::Acknowledge => "queue.settle acknowledge",
            Settlement::Retry(_) => "queue.settle retry",
            Settlement::Defer(_) => "queue.settle defer",
            Settlement::Release => "queue.settle release",
            Settlement::DeadLetter { .. } => "queue.settle dead letter",
        };
        self.pass(name, self.inner.settle(delivery, settlement), queue_error).await
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        self.pass("queue.depth", self.inner.depth(), queue_error).await
    }
}

#[async_trait]
impl Publisher for FaultyPort<dyn Publisher> {
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError> {
        self.pass("publisher.publish", self.inner.publish(notifications), || {
            PublishError::Dependency(DependencyError::Unavailable(INJECTED.into()))
        })
        .await
    }
}
