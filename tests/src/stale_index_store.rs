//! A store whose secondary indexes are eventually consistent, as those of DynamoDB are.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sparks_domain::{FaceId, ImageId, Item, Key, PersonId, PhotoState, Position, RecordedEvent, Seq};
use sparks_engine::{
    Checkpoint, Commit, CommitError, DecidedFace, Filter, Fingerprint, IdentityTail, Maintenance, Page, Query,
    RepairGroup, RepairReport, Store, StoreError, StoredFace, TemplateScope, Templates,
};

/// Answers index queries from a frozen copy of the table. The table itself, the log and the faces stay consistent.
pub struct StaleIndexStore {
    inner: Arc<dyn Maintenance>,
    frozen: Mutex<Option<Vec<Item>>>,
}

impl StaleIndexStore {
    /// Creates a store whose indexes are up to date until they are frozen.
    pub fn new(inner: Arc<dyn Maintenance>) -> Arc<Self> {
        Arc::new(Self { inner, frozen: Mutex::default() })
    }

    /// Freezes the indexes at the current rows.
    ///
    /// # Panics
    ///
    /// Panics if the store cannot be scanned.
    pub async fn freeze_indexes(&self) {
        let rows = self.inner.scan(None, usize::MAX).await.expect("scan succeeds");
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }

    /// Lets the indexes follow the table again.
    pub fn refresh_indexes(&self) {
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn query_frozen(&self, query: &Query) -> Option<Page> {
        let frozen = self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, value) = match &query.filter {
            Filter::Partition { .. } => return None,
            Filter::EntityType(value) => ("entityType", value),
            Filter::UploadedBy(value) => ("uploadedBy", value),
        };
        let is_after = |key: &Key| match &query.after {
            Some(after) if query.backwards => key < after,
            Some(after) => key > after,
            None => true,
        };
        let found = frozen.as_ref()?.iter().filter(|row| row.text(name) == Some(value) && is_after(&row.key));
        let mut items: Vec<Item> = found.cloned().collect();
        items.sort_by(|a, b| if query.backwards { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) });
        let is_all = items.len() <= query.limit;
        items.truncate(query.limit);
        let last = items.last().filter(|_| !is_all).map(|row| row.key.clone());
        Some(Page { items, last })
    }
}

#[async_trait]
impl Store for StaleIndexStore {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        self.inner.commit(commit).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.inner.photo(image).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.inner.identity(after).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        self.inner.read_log(after, most).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        self.inner.event(image, seq).await
    }

    async fn templates(&self, after: &Position, reach: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        self.inner.templates(after, reach, most).await
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.inner.signatures(faces).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        self.inner.faces_of(persons).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.inner.get(key).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.inner.batch_get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        match self.query_frozen(query) {
            Some(page) => Ok(page),
            None => self.inner.query(query).await,
        }
    }
}

#[async_trait]
impl Maintenance for StaleIndexStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.inner.heads().await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.inner.scan(after, most).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.inner.photos(images).await
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        self.inner.repair(groups, write).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        self.inner.unidentified(after, most).await
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        self.inner.co_occurrences(of).await
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        self.inner.checkpoint(checkpoint).await
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        self.inner.set_checkpoint(checkpoint, position).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.inner.fingerprint().await
    }
}
