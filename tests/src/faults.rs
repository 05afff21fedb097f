//! Ports that fail on purpose: decorators that count the calls and break at one of them.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Recorded, Seq};
use sparks_engine::{
    Commit, CommitError, Content, DecidedFace, Delivery, Depth, Fingerprint, IdentityTail, Listed, Maintenance, Mark,
    Mended, MessageId, Notice, Object, Objects, ObjectsError, Page, PublishError, Publisher, PutMode, Query, Queue,
    QueueError, Reach, Settlement, Store, StoreError, StoredFace, Templates,
};

/// Where something breaks, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The call at which it does; the first is 1.
    pub call: usize,
    /// Whether the call is still done.
    pub moment: Moment,
    /// What becomes of the calls after it.
    pub aftermath: Aftermath,
}

/// The side of a call on which something breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing was done.
    Before,
    /// It was done, and the caller never hears of it.
    After,
}

/// What becomes of the calls after a broken one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aftermath {
    /// None is made any more: the process is gone.
    Gone,
    /// They work: it was an outage of a moment.
    GoesOn,
}

/// What all ports of one process share: the count of their calls, and the fault that awaits them.
#[derive(Default)]
pub struct Fuse {
    fault: Option<Fault>,
    calls: Mutex<Vec<String>>,
    errand: Mutex<Option<(Occasion, Errand)>>,
}

/// When somebody else does something.
enum Occasion {
    Named(String),
    Numbered(usize),
}

/// What somebody else does meanwhile.
type Errand = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A port whose calls go through the fuse.
pub struct Faulty<P: ?Sized> {
    inner: Arc<P>,
    fuse: Arc<Fuse>,
}

const BROKEN: &str = "broken on purpose";

impl Fuse {
    /// Counts, and never breaks.
    pub fn counting() -> Arc<Self> {
        Arc::default()
    }

    /// Breaks at this fault.
    pub fn at(fault: Fault) -> Arc<Self> {
        Arc::new(Self { fault: Some(fault), ..Self::default() })
    }

    /// Never breaks; right before the first call of this name somebody else does something.
    pub fn meanwhile(call: &str, errand: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            errand: Mutex::new(Some((Occasion::Named(call.to_owned()), Box::pin(errand)))),
            ..Self::default()
        })
    }

    /// Never breaks; right before this call, the first being 1, somebody else does something.
    pub fn interrupted(call: usize, errand: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self { errand: Mutex::new(Some((Occasion::Numbered(call), Box::pin(errand)))), ..Self::default() })
    }

    /// Whether nobody else has anything left to do.
    pub fn is_errand_done(&self) -> bool {
        self.errand.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn errand_before(&self, what: &str) -> Option<Errand> {
        let mut errand = self.errand.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.calls().len() + 1;
        let is_now = |occasion: &Occasion| match occasion {
            Occasion::Named(call) => call == what,
            Occasion::Numbered(call) => *call == next,
        };
        errand.take_if(|(occasion, _)| is_now(occasion)).map(|(_, errand)| errand)
    }

    /// The calls so far, each with what it was about.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the fault has happened.
    pub fn has_blown(&self) -> bool {
        self.fault.is_some_and(|fault| self.calls().len() >= fault.call)
    }

    /// The port behind this fuse.
    pub fn guard<P: ?Sized>(self: &Arc<Self>, inner: Arc<P>) -> Arc<Faulty<P>> {
        Arc::new(Faulty { inner, fuse: Arc::clone(self) })
    }

    fn count(&self, what: String) -> Option<Moment> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(what);
        let fault = self.fault?;
        match fault.aftermath {
            _ if calls.len() == fault.call => Some(fault.moment),
            Aftermath::Gone if calls.len() > fault.call => Some(Moment::Before),
            _ => None,
        }
    }
}

impl<P: ?Sized> Faulty<P> {
    async fn pass<T, E>(
        &self,
        what: impl Into<String> + Send,
        call: impl Future<Output = Result<T, E>> + Send,
        broken: impl FnOnce() -> E + Send,
    ) -> Result<T, E> {
        let what = what.into();
        if let Some(errand) = self.fuse.errand_before(&what) {
            errand.await;
        }
        match self.fuse.count(what) {
            None => call.await,
            Some(Moment::Before) => Err(broken()),
            Some(Moment::After) => {
                let _never_heard = call.await;
                Err(broken())
            }
        }
    }
}

fn store_error() -> StoreError {
    StoreError::Unavailable(BROKEN.into())
}

fn queue_error() -> QueueError {
    QueueError::Unavailable(BROKEN.into())
}

fn objects_error(key: &str) -> ObjectsError {
    ObjectsError::Unavailable { key: key.to_owned(), reason: BROKEN.into() }
}

#[async_trait]
impl<P: Store + ?Sized> Store for Faulty<P> {
    async fn commit(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        self.pass("store.commit", self.inner.commit(commit), || store_error().into()).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.pass("store.photo", self.inner.photo(image), store_error).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.pass("store.identity", self.inner.identity(after), store_error).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError> {
        self.pass("store.read_log", self.inner.read_log(after, most), store_error).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<Recorded>, StoreError> {
        self.pass("store.event", self.inner.event(image, seq), store_error).await
    }

    async fn templates(&self, after: &Position, reach: Reach, most: usize) -> Result<Templates, StoreError> {
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
impl<P: Maintenance + ?Sized> Maintenance for Faulty<P> {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.pass("store.heads", self.inner.heads(), store_error).await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.pass("store.scan", self.inner.scan(after, most), store_error).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.pass("store.photos", self.inner.photos(images), store_error).await
    }

    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool) -> Result<Mended, StoreError> {
        self.pass("store.mend", self.inner.mend(groups, write), store_error).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        self.pass("store.unidentified", self.inner.unidentified(after, most), store_error).await
    }

    async fn company(&self, of: Option<&BTreeSet<PersonId>>) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        self.pass("store.company", self.inner.company(of), store_error).await
    }

    async fn mark(&self, mark: Mark) -> Result<Position, StoreError> {
        self.pass("store.mark", self.inner.mark(mark), store_error).await
    }

    async fn set_mark(&self, mark: Mark, position: &Position) -> Result<(), StoreError> {
        self.pass("store.set_mark", self.inner.set_mark(mark, position), store_error).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.pass("store.fingerprint", self.inner.fingerprint(), store_error).await
    }
}

#[async_trait]
impl Objects for Faulty<dyn Objects> {
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

    async fn head(&self, key: &str) -> Result<Option<u64>, ObjectsError> {
        self.pass(format!("objects.head {key}"), self.inner.head(key), || objects_error(key)).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Listed>, ObjectsError> {
        let call = self.inner.list(prefix, after, most);
        self.pass(format!("objects.list {prefix}"), call, || objects_error(prefix)).await
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        self.pass("objects.check", self.inner.check(), || objects_error("check")).await
    }
}

#[async_trait]
impl Queue for Faulty<dyn Queue> {
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
        let what = match &settlement {
            Settlement::Done => "queue.settle done",
            Settlement::Retry(_) => "queue.settle retry",
            Settlement::Wait(_) => "queue.settle wait",
            Settlement::Release => "queue.settle release",
            Settlement::DeadLetter { .. } => "queue.settle dead letter",
        };
        self.pass(what, self.inner.settle(delivery, settlement), queue_error).await
    }

    async fn depth(&self) -> Result<Depth, QueueError> {
        self.pass("queue.depth", self.inner.depth(), queue_error).await
    }
}

#[async_trait]
impl Publisher for Faulty<dyn Publisher> {
    async fn publish(&self, notices: &[Notice]) -> Result<(), PublishError> {
        self.pass("publisher.publish", self.inner.publish(notices), || PublishError::Unavailable(BROKEN.into())).await
    }
}
