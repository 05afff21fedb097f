//! Which faces persons are known by, as one object: whoever starts need not read the log from its beginning.
//!
//! It holds names alone. What faces look like stays where it is erased, so a snapshot has nothing to erase, and one that is
//! old, or not there, costs time and nothing else.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use sparks_domain::{EventId, FaceId, Lane, Position, Recorded, Seq, Version};

use crate::{Content, Objects, ObjectsError, PutMode};

/// The faces that persons are known by, up to a position of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    v: Version<1>,
    /// The last event about persons by then: a log that has another one there is another log.
    identity: (Seq, EventId),
    position: BTreeMap<Lane, Seq>,
    templates: Vec<FaceId>,
}

impl Snapshot {
    /// Persons are known by these faces up to this position and this event about persons.
    pub(crate) fn new(position: &Position, identity: (Seq, EventId), templates: Vec<FaceId>) -> Self {
        Self { v: Version, identity, position: position.lanes().collect(), templates }
    }

    /// Whether it is about the log with these events about persons, which goes as far as this.
    pub(crate) fn is_about(&self, events: &[Recorded], heads: &Position) -> bool {
        let (seq, id) = &self.identity;
        let is_known = events.iter().any(|recorded| recorded.seq == *seq && recorded.id == *id);
        is_known && self.position.iter().all(|(lane, seq)| heads.in_lane(*lane) >= *seq)
    }

    /// Up to where it goes.
    pub fn position(&self) -> Position {
        self.position.iter().map(|(lane, seq)| (*lane, *seq)).collect()
    }

    /// The faces.
    pub fn templates(&self) -> &[FaceId] {
        &self.templates
    }
}

/// Where the snapshot is.
pub struct Snapshots {
    objects: Arc<dyn Objects>,
    key: String,
    /// How many events the last one covers, or was to cover.
    covered: AtomicU64,
}

/// More bytes than the names of ten million faces.
const LARGEST: u64 = 1 << 29;
/// Events that are read sooner than a snapshot is written.
const WORTH_WRITING: u64 = 1000;

impl Snapshots {
    /// The snapshot is this object.
    pub fn new(objects: Arc<dyn Objects>, key: String) -> Self {
        Self { objects, key, covered: AtomicU64::new(0) }
    }

    /// The snapshot, where there is one that can be read.
    pub(crate) async fn read(&self) -> Option<Snapshot> {
        let bytes = match self.objects.get(&self.key, LARGEST).await {
            Ok(object) => object.bytes,
            Err(ObjectsError::NotFound(_)) => return None,
            Err(error) => {
                tracing::warn!(%error, "cannot read the gallery's snapshot: the whole log is read instead");
                return None;
            }
        };
        match serde_json::from_slice::<Snapshot>(&bytes) {
            Ok(snapshot) => {
                self.covered.store(snapshot.position().events(), Ordering::Relaxed);
                Some(snapshot)
            }
            Err(error) => {
                tracing::warn!(key = self.key, %error, "not a snapshot of a gallery: the whole log is read instead");
                None
            }
        }
    }

    /// Whether a snapshot at this position would save much.
    pub(crate) fn is_worth_writing(&self, position: &Position, templates: usize) -> bool {
        let worth = WORTH_WRITING.max(templates as u64 / 8);
        position.events() >= self.covered.load(Ordering::Relaxed) + worth
    }

    /// Whether nothing has happened since the last one.
    pub(crate) fn is_current(&self, position: &Position) -> bool {
        position.events() <= self.covered.load(Ordering::Relaxed)
    }

    /// Writes the snapshot. One that cannot be written is not worth trying again before much more has happened.
    pub(crate) async fn write(&self, snapshot: &Snapshot) -> Result<(), ObjectsError> {
        self.covered.store(snapshot.position().events(), Ordering::Relaxed);
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        let content = Content { content_type: "application/json", cache_control: "no-cache" };
        self.objects.put(&self.key, bytes, content, PutMode::Replace).await.map(drop)
    }
}
