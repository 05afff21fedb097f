//! A store whose indexes lag behind its table, as those in the cloud do.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Recorded, Seq};
use sparks_engine::{
    Commit, CommitError, DecidedFace, Filter, Fingerprint, IdentityTail, Maintenance, Mark, Mended, Page, Query, Reach,
    Store, StoreError, StoredFace, Templates,
};

/// Answers from its indexes as of when they fell behind; the table itself, the log and the faces are as of now.
pub struct Lagging {
    inner: Arc<dyn Maintenance>,
    shown: Mutex<Option<Vec<Item>>>,
}

impl Lagging {
    /// Lags not at all, until it falls behind.
    pub fn over(inner: Arc<dyn Maintenance>) -> Arc<Self> {
        Arc::new(Self { inner, shown: Mutex::default() })
    }

    /// From now on the indexes show what is there now.
    ///
    /// # Panics
    ///
    /// Where the store does not answer.
    pub async fn fall_behind(&self) {
        let rows = self.inner.scan(None, usize::MAX).await.expect("all rows");
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }

    /// From now on the indexes show what is there.
    pub fn catch_up(&self) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn shown(&self, query: &Query) -> Option<Page> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, value) = match &query.filter {
            Filter::Partition { .. } => return None,
            Filter::EntityType(value) => ("entityType", value),
            Filter::UploadedBy(value) => ("uploadedBy", value),
        };
        let is_beyond = |key: &Key| match &query.after {
            Some(after) if query.backwards => key < after,
            Some(after) => key > after,
            None => true,
        };
        let found = shown.as_ref()?.iter().filter(|row| row.text(name) == Some(value) && is_beyond(&row.key));
        let mut items: Vec<Item> = found.cloned().collect();
        items.sort_by(|a, b| if query.backwards { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) });
        let is_all = items.len() <= query.limit;
        items.truncate(query.limit);
        let last = items.last().filter(|_| !is_all).map(|row| row.key.clone());
        Some(Page { items, last })
    }
}

#[async_trait]
impl Store for Lagging {
    async fn commit(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        self.inner.commit(commit).await
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.inner.photo(image).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        self.inner.identity(after).await
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError> {
        self.inner.read_log(after, most).await
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<Recorded>, StoreError> {
        self.inner.event(image, seq).await
    }

    async fn templates(&self, after: &Position, reach: Reach, most: usize) -> Result<Templates, StoreError> {
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
        match self.shown(query) {
            Some(page) => Ok(page),
            None => self.inner.query(query).await,
        }
    }
}

#[async_trait]
impl Maintenance for Lagging {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.inner.heads().await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.inner.scan(after, most).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.inner.photos(images).await
    }

    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool) -> Result<Mended, StoreError> {
        self.inner.mend(groups, write).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        self.inner.unidentified(after, most).await
    }

    async fn company(&self, of: Option<&BTreeSet<PersonId>>) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        self.inner.company(of).await
    }

    async fn mark(&self, mark: Mark) -> Result<Position, StoreError> {
        self.inner.mark(mark).await
    }

    async fn set_mark(&self, mark: Mark, position: &Position) -> Result<(), StoreError> {
        self.inner.set_mark(mark, position).await
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.inner.fingerprint().await
    }
}
