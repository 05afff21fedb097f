//! What lies between a client and the services: latency, errors before and after a call takes effect, throttling, outages.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use sparks_domain::{Event, FaceId, ImageId, Item, Key, PersonId, PhotoState, Position, RecordedEvent, Seq};
use sparks_engine::{
    Checkpoint, Commit, CommitError, Content, DecidedFace, Delivery, DependencyError, Fingerprint, IdentityTail,
    Maintenance, MessageId, Notification, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, Page, PublishError,
    Publisher, PutMode, Query, Queue, QueueDepth, QueueError, RepairGroup, RepairReport, Settlement, Store, StoreError,
    StoredFace, TemplateScope, Templates,
};
use tokio::time::{sleep, timeout};

use crate::{
    memory::{MemoryObjects, MemoryQueue, MemoryStore},
    story::Story,
};

/// How calls fail.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Conditions {
    /// The probability that a call fails without effect.
    pub error: f64,
    /// The probability that a call takes effect and its reply is lost.
    pub lost_reply: f64,
    /// The probability that a call is throttled.
    pub throttled: f64,
    /// The probability that a call takes as long as `slow_call`.
    pub slow: f64,
    /// Whether every call fails, health checks too.
    pub is_outage: bool,
}

/// A service that clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Store,
    Objects,
    Queue,
    Publisher,
    Faces,
}

impl Service {
    pub const ALL: [Self; 5] = [Self::Store, Self::Objects, Self::Queue, Self::Publisher, Self::Faces];
}

/// The conditions that hold now, by service. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<[Conditions; Service::ALL.len()]>>);

impl Network {
    pub fn get(&self, service: Service) -> Conditions {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[service as usize]
    }

    pub fn set(&self, service: Service, conditions: Conditions) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[service as usize] = conditions;
    }

    pub fn set_all(&self, conditions: Conditions) {
        Service::ALL.iter().for_each(|service| self.set(*service, conditions));
    }
}

/// The connection of one client.
#[derive(Clone)]
pub(crate) struct Link {
    pub client: String,
    pub service: Service,
    pub network: Network,
    pub story: Story,
    /// The longest duration of a slow call: longer than a visibility timeout.
    pub slow_call: Duration,
}

impl Link {
    /// Makes a call. Latency comes before and after its effect, so that a client may die in between.
    pub async fn call<T, E: From<DependencyError> + std::fmt::Display>(
        &self,
        name: impl Fn() -> String,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let conditions = self.network.get(self.service);
        let happens = |probability: f64| probability > 0.0 && fastrand::f64() < probability;
        let latency = match happens(conditions.slow) {
            true => self.slow_call.mul_f64(fastrand::f64()),
            false => Duration::from_millis(fastrand::u64(0..8)),
        };
        sleep(latency).await;
        if conditions.is_outage || happens(conditions.error) {
            self.story.tell(|| format!("{}: {}: unavailable", self.client, name()));
            return Err(DependencyError::Unavailable("connection refused".into()).into());
        }
        if happens(conditions.throttled) {
            self.story.tell(|| format!("{}: {}: throttled", self.client, name()));
            return Err(DependencyError::Throttled("too many requests".into()).into());
        }
        let result = work.await;
        match &result {
            Ok(_) => self.story.tell_some(|| {
                let name = name();
                // Polling of an empty queue is no story.
                (name != "queue.receive").then(|| format!("{}: {name}", self.client))
            }),
            Err(error) => self.story.tell(|| format!("{}: {}: {error}", self.client, name())),
        }
        sleep(Duration::from_millis(fastrand::u64(0..4))).await;
        if happens(conditions.lost_reply) {
            self.story.tell(|| format!("{}: {}: reply lost", self.client, name()));
            return Err(DependencyError::Unavailable("timeout: no reply".into()).into());
        }
        result
    }
}

fn list(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The store, as one client reaches it.
#[derive(Clone)]
pub(crate) struct LinkedStore {
    pub inner: MemoryStore,
    pub link: Link,
    /// Returns whether the client's release can read an event.
    pub can_read: fn(&Event) -> bool,
}

impl LinkedStore {
    fn readable(&self, events: &[RecordedEvent]) -> Result<(), StoreError> {
        match events.iter().find(|recorded| !(self.can_read)(&recorded.event)) {
            Some(recorded) => Err(StoreError::UnreadableLog(format!(
                "event type {:?} is not known to this version of sparks: it was written by a newer one, so upgrade",
                recorded.event.event_type()
            ))),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Store for LinkedStore {
    fn has_serial_commits(&self) -> bool {
        self.inner.has_serial_commits()
    }

    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let name = || {
            let events: Vec<&str> = commit.events.iter().map(Event::event_type).collect();
            let about = commit.photo.as_ref().map(|photo| photo.image.to_string()).unwrap_or_default();
            format!("store.commit [{}] {} rows {about}", events.join(", "), commit.mutations.len())
        };
        self.link.call(name, self.inner.commit(commit)).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.link.call(|| format!("store.photo {image}"), self.inner.photo(image)).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let tail = self.link.call(|| "store.identity".into(), self.inner.identity(after)).await?;
        self.readable(&tail.events)?;
        Ok(tail)
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let events = self.link.call(|| "store.read_log".into(), self.inner.read_log(after, most)).await?;
        self.readable(&events)?;
        Ok(events)
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        let event = self.link.call(|| format!("store.event {image} {seq}"), self.inner.event(image, seq)).await?;
        self.readable(event.as_slice())?;
        Ok(event)
    }

    async fn templates(&self, after: &Position, scope: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        self.link.call(|| "store.templates".into(), self.inner.templates(after, scope, most)).await
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.link.call(|| format!("store.signatures {}", list(faces)), self.inner.signatures(faces)).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.link.call(|| format!("store.faces_of {}", list(persons)), self.inner.faces_of(persons)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.link.call(|| "store.check".into(), self.inner.check()).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.link.call(|| format!("store.get {key}"), self.inner.get(key)).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.link.call(|| "store.batch_get".into(), self.inner.batch_get(keys)).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        self.link.call(|| format!("store.query {:?}", query.filter), self.inner.query(query)).await
    }
}

#[async_trait]
impl Maintenance for LinkedStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.link.call(|| "store.heads".into(), self.inner.heads()).await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.link.call(|| "store.scan".into(), self.inner.scan(after, most)).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.link.call(|| "store.photos".into(), self.inner.photos(images)).await
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        self.link.call(|| "store.repair".into(), self.inner.repair(groups, write)).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        self.link.call(|| "store.unidentified".into(), self.inner.unidentified(after, most)).await
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        self.link.call(|| "store.co_occurrences".into(), self.inner.co_occurrences(of)).await
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        self.link.call(|| "store.checkpoint".into(), self.inner.checkpoint(checkpoint)).await
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        self.link.call(|| "store.set_checkpoint".into(), self.inner.set_checkpoint(checkpoint, position)).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.link.call(|| "store.fingerprint".into(), self.inner.fingerprint()).await
    }
}

/// Any other service, as one client reaches it.
#[derive(Clone)]
pub(crate) struct Linked<P> {
    pub inner: P,
    pub link: Link,
}

/// An error of the bucket, which names the key.
struct KeylessError(ObjectsError);

impl From<DependencyError> for KeylessError {
    fn from(error: DependencyError) -> Self {
        Self(ObjectsError::Dependency { key: String::new(), error })
    }
}

impl std::fmt::Display for KeylessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Linked<MemoryObjects> {
    async fn object_call<T>(
        &self,
        name: impl Fn() -> String,
        work: impl Future<Output = Result<T, ObjectsError>>,
    ) -> Result<T, ObjectsError> {
        self.link.call(name, async { work.await.map_err(KeylessError) }).await.map_err(|error| error.0)
    }
}

#[async_trait]
impl Objects for Linked<MemoryObjects> {
    async fn get(&self, key: &str, most_bytes: u64) -> Result<Object, ObjectsError> {
        self.object_call(|| format!("objects.get {key}"), self.inner.get(key, most_bytes)).await
    }

    async fn put(&self, key: &str, body: Vec<u8>, content: Content, mode: PutMode) -> Result<bool, ObjectsError> {
        let text = if self.link.story.is_told() { String::from_utf8_lossy(&body).into_owned() } else { String::new() };
        self.object_call(|| format!("objects.put {key} ({text})"), self.inner.put(key, body, content, mode)).await
    }

    async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        self.object_call(|| format!("objects.delete {key}"), self.inner.delete(key)).await
    }

    async fn delete_version(&self, key: &str, version: &str) -> Result<(), ObjectsError> {
        let name = || format!("objects.delete_version {key} {version}");
        self.object_call(name, self.inner.delete_version(key, version)).await
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        self.object_call(|| format!("objects.head {key}"), self.inner.head(key)).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        self.object_call(|| "objects.list".into(), self.inner.list(prefix, after, most)).await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.object_call(|| "objects.check".into(), self.inner.check()).await
    }
}

#[async_trait]
impl Queue for Linked<MemoryQueue> {
    /// Long polling.
    fn wait_time(&self) -> Duration {
        Duration::from_secs(20)
    }

    async fn send(&self, body: &str, deduplication: &str) -> Result<MessageId, QueueError> {
        self.link.call(|| "queue.send".into(), self.inner.send(body, deduplication)).await
    }

    async fn receive(&self, most: usize) -> Result<Vec<Delivery>, QueueError> {
        drop(timeout(self.wait_time(), self.inner.wait_while_empty()).await);
        let received = self.link.call(|| "queue.receive".into(), self.inner.receive(most)).await?;
        for delivery in &received {
            self.link.story.tell(|| format!("{}: received {} {}", self.link.client, delivery.id.0, delivery.body));
        }
        Ok(received)
    }

    async fn extend(&self, delivery: &Delivery) -> Result<(), QueueError> {
        self.link.call(|| "queue.extend".into(), self.inner.extend(delivery)).await
    }

    async fn settle(&self, delivery: Delivery, settlement: Settlement) -> Result<(), QueueError> {
        let (settled, ending) = (delivery.clone(), settlement.clone());
        let name = || format!("queue.settle {} {ending:?}", settled.id.0);
        self.link.call(name, self.inner.settle(delivery, settlement)).await?;
        self.inner.confirm_settlement(&settled);
        Ok(())
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        self.link.call(|| "queue.depth".into(), self.inner.depth()).await
    }
}

#[async_trait]
impl<P: Publisher> Publisher for Linked<P> {
    async fn publish(&self, notifications: &[Notification]) -> Result<(), PublishError> {
        self.link.call(|| "publisher.publish".into(), self.inner.publish(notifications)).await
    }

    async fn check(&self) -> Result<(), PublishError> {
        self.link.call(|| "publisher.check".into(), self.inner.check()).await
    }
}
