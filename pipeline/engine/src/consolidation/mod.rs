//! Consolidation: merging persons found to be one, undoing merges, and reviewing unidentified faces.

mod duplicate_search;
mod merge;
mod photo_updates;
mod postponed_merges;
mod proposals;
mod review;

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use sparks_domain::{EventId, IdentityHead, PersonId, PersonRegistry, Policy, Projection, RecordedEvent, Scale};

use crate::{
    Clock, CommitError, CpuPool, DependencyError, Failure, GalleryIndex, IndexError, Maintenance, Objects,
    ObjectsError, Pipeline, StoreError, photo_rows::PhotoRows, stages::Notifier,
};

use self::{
    proposals::{MergeProgress, MergeReport},
    review::ReviewCursor,
};
pub use merge::MergeSummary;
pub use photo_updates::PhotoUpdateReport;

/// Merges and unmerges persons, and reviews unidentified faces. Every change is an event. The rows of photos are updated after it,
/// in steps that can be interrupted and continued.
pub struct Consolidator {
    pipeline: Arc<Pipeline>,
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    index: Arc<GalleryIndex>,
    clock: Arc<dyn Clock>,
    config: ConsolidationConfig,
    /// The identity event up to which this process has updated all photos that an index of the table returned. Photos that a
    /// lagging index did not return yet are updated in a later run.
    updated_once: AtomicU64,
    merge_progress: tokio::sync::Mutex<MergeProgress>,
    review_cursor: Mutex<ReviewCursor>,
}

/// The configuration of a consolidator.
#[derive(Debug, Clone)]
pub struct ConsolidationConfig {
    /// The policy by which faces are identified.
    pub policy: Policy,
    /// Returns the similarity scale of a model. Persons of a model without a scale are not merged.
    pub scale: fn(&str) -> Option<Scale>,
    /// How events become rows.
    pub projection: Projection,
    /// The actor of recorded events.
    pub actor: String,
    /// The maximum time that an index of the table lags behind it, and by which clocks of workers differ.
    pub index_lag: Duration,
    /// The threads on which faces are compared.
    pub cpu: CpuPool,
}

/// Errors returned when merging persons.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The person does not exist.
    #[error("there is no {0}; list persons with `sparks query persons`")]
    Unknown(PersonId),
    /// The persons are merged already.
    #[error("{0} is the same person as {1} already; list merges with `sparks persons merges`")]
    AlreadyMerged(PersonId, PersonId),
    /// The persons are different faces of one photo.
    #[error("{0} and {1} are different faces in one photo; merge them nevertheless with --force")]
    SeenTogether(PersonId, PersonId),
    /// The event is not a merge.
    #[error("event {0} is not a merge; list merges with `sparks persons merges`")]
    NotAMerge(EventId),
    /// Every attempt met a conflict.
    #[error("conflict: persons were changed by others in every attempt; try again")]
    Conflict,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The bucket failed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// Persons could not be updated after an unmerge.
    #[error(transparent)]
    Persons(#[from] Failure),
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsolidationReport {
    /// The merges that were recorded.
    pub merged: Vec<MergeSummary>,
    /// The number of faces that a review has identified.
    pub identified: usize,
    /// Whether another run is needed.
    pub has_more: bool,
    /// Whether the run was interrupted because it took long; the next continues at once.
    pub is_interrupted: bool,
}

/// The number of rows read at a time.
const PAGE: usize = 256;

impl Consolidator {
    /// Creates a consolidator of this store. The pipeline has the same store and gallery; it forgets persons whom an unmerge leaves
    /// without a photo, and publishes events.
    pub fn new(
        pipeline: Arc<Pipeline>,
        store: Arc<dyn Maintenance>,
        index: Arc<GalleryIndex>,
        config: ConsolidationConfig,
    ) -> Self {
        let (objects, clock) = (Arc::clone(&pipeline.ports.objects), Arc::clone(&pipeline.ports.clock));
        let (updated_once, merge_progress) = (AtomicU64::default(), tokio::sync::Mutex::default());
        let review_cursor = Mutex::default();
        Self { pipeline, store, objects, index, clock, config, updated_once, merge_progress, review_cursor }
    }

    /// Runs for a while after photos were committed: merges duplicates (if `merge`), updates the rows of photos after merges, and
    /// reviews some of the unidentified faces. The next run continues.
    pub async fn run(&self, merge: bool) -> Result<ConsolidationReport, MergeError> {
        let MergeReport { merged, is_interrupted, has_postponed } =
            if merge { self.merge_for_a_while().await? } else { MergeReport::default() };
        let updated = self.apply_merges(|_| ()).await?;
        let reviewed = self.review_batch().await?;
        Ok(ConsolidationReport {
            merged,
            identified: reviewed.identified,
            has_more: is_interrupted || has_postponed || updated.is_incomplete || reviewed.has_more,
            is_interrupted: is_interrupted || reviewed.has_more,
        })
    }

    /// Like [`Consolidator::run`], until nothing is left that can be done now.
    pub async fn run_to_end(&self, merge: bool) -> Result<ConsolidationReport, MergeError> {
        let mut all = ConsolidationReport::default();
        loop {
            let ConsolidationReport { merged, identified, has_more, is_interrupted } = self.run(merge).await?;
            all.merged.extend(merged);
            all.identified += identified;
            all.has_more = has_more;
            if !is_interrupted {
                return Ok(all);
            }
        }
    }

    /// Publishes recorded events. A failure is only logged: the event log has them.
    async fn publish(&self, recorded: &[RecordedEvent]) {
        Notifier(&self.pipeline).publish_once(recorded).await;
    }

    fn people_and_identity(&self) -> (Arc<PersonRegistry>, IdentityHead) {
        let state = self.index.state();
        (Arc::clone(&state.people), state.identity.clone())
    }

    /// Runs CPU-bound work on the CPU pool, because it would block the asynchronous runtime.
    async fn on_cpu<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, MergeError> {
        let failed = |error| DependencyError::Unavailable(format!("failed to compare faces: {error}"));
        self.config.cpu.run(work).await.map_err(|error| StoreError::from(failed(error)).into())
    }

    fn photo_rows(&self) -> PhotoRows<'_> {
        PhotoRows { store: self.store.as_ref(), projection: self.config.projection }
    }
}

impl MergeError {
    /// Whether the error is about the persons to merge. Otherwise other merges would fail as well.
    fn concerns_these_persons(&self) -> bool {
        !matches!(
            self,
            Self::Objects(_)
                | Self::Persons(_)
                | Self::Store(StoreError::Dependency(_))
                | Self::Commit(CommitError::Store(StoreError::Dependency(_)))
        )
    }
}

impl From<IndexError> for MergeError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => Self::Store(error),
            error => Self::Store(DependencyError::Unavailable(error.to_string()).into()),
        }
    }
}
