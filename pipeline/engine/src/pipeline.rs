//! The pipeline: what a request goes through, and everything that needs.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sparks_domain::{Email, ImageId, Policy, Projection, Rejection, SourceObject};

use crate::{
    ArrivalSlot, Clock, CpuPool, FaceAnalyzer, FaceIndex, Failure, ImageProcessor, Meter, Objects, Outcome, PhotoRef,
    Publisher, Request, Store, VariantStore,
    stages::{AllocationContention, PhotoDeletion, PhotoProcessor, ProfileProcessor},
};

/// Processes requests. `stages/process.rs` has the stages of a photo in order.
pub struct Pipeline {
    pub(crate) ports: Ports,
    pub(crate) cpu: CpuPool,
    pub(crate) config: PipelineConfig,
    conflicts: AtomicU64,
    pub(crate) contention: AllocationContention,
}

/// The adapters that the pipeline uses.
#[derive(Clone)]
pub struct Ports {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// The table, the event log and the signatures.
    pub store: Arc<dyn Store>,
    /// Decodes photos and makes variants and crops.
    pub image_processor: Arc<dyn ImageProcessor>,
    /// Detects faces and computes embeddings.
    pub analyzer: Arc<dyn FaceAnalyzer>,
    /// Searches and enrolls known persons.
    pub index: Arc<dyn FaceIndex>,
    /// Publishes notifications.
    pub publisher: Arc<dyn Publisher>,
    /// Records durations and calls.
    pub meter: Arc<dyn Meter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The settings of the pipeline.
#[derive(Debug, Clone)]
pub struct PipelineConfig {
    /// When a face matches a person, and when it may become a new one.
    pub policy: Policy,
    /// How events become rows.
    pub projection: Projection,
    /// The size limit of an original.
    pub max_bytes: u64,
    /// The program and version that events record.
    pub actor: String,
    /// The name of the bucket in messages and notifications.
    pub bucket: String,
    /// Which notifications are published.
    pub publish: PublishConfig,
}

/// Which notifications are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishConfig {
    /// `thumbnail-completed`, when the variants of a photo are stored.
    pub thumbnails: bool,
    /// Every event of the log.
    pub events: bool,
}

impl Pipeline {
    /// Creates a pipeline.
    pub fn new(ports: Ports, cpu: CpuPool, config: PipelineConfig) -> Self {
        Self { ports, cpu, config, conflicts: AtomicU64::new(0), contention: AllocationContention::default() }
    }

    /// Processes a request exactly once in effect: after a crash at any point, processing it again ends in the same state.
    pub async fn handle(&self, request: Request, slot: &ArrivalSlot) -> Result<Outcome, Failure> {
        match request {
            Request::Photo(photo) => self.process(photo, slot).await,
            Request::Profile(profile) => ProfileProcessor(self).process(profile, slot).await,
            Request::Delete(delete) => PhotoDeletion(self).delete(delete, slot.sent).await,
            Request::Removed(removed) => PhotoDeletion(self).original_removed(removed).await,
            Request::Ignored { reason } => Ok(Outcome::Ignored(reason)),
            Request::Malformed(malformed) => Err(malformed.into()),
        }
    }

    /// Processes a photo.
    pub async fn process(&self, photo: PhotoRef, slot: &ArrivalSlot) -> Result<Outcome, Failure> {
        PhotoProcessor(self).process(photo, slot).await
    }

    /// Commits the rejection of a photo that need not be fetched to be rejected.
    pub async fn reject(
        &self,
        image: ImageId,
        uploader: Email,
        source: SourceObject,
        reason: Rejection,
    ) -> Result<Outcome, Failure> {
        PhotoProcessor(self).reject_unread(image, uploader, source, reason).await
    }

    /// Deletes a photo for an operator, regardless of the uploader. Fails for a photo that neither the table nor the log contains.
    pub async fn delete_as_operator(&self, image: &ImageId) -> Result<Outcome, Failure> {
        PhotoDeletion(self).delete_as_operator(image).await
    }

    /// Returns the number of commits that were decided again after a conflict.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    /// Returns the image processor.
    pub fn image_processor(&self) -> Arc<dyn ImageProcessor> {
        Arc::clone(&self.ports.image_processor)
    }

    /// Returns the variants in the bucket.
    pub(crate) fn variants(&self) -> VariantStore {
        let Ports { objects, image_processor, .. } = &self.ports;
        let (objects, image_processor) = (Arc::clone(objects), Arc::clone(image_processor));
        VariantStore { objects, image_processor, cpu: self.cpu.clone(), max_bytes: self.config.max_bytes }
    }

    pub(crate) fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }
}
