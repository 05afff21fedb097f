//! A snapshot of the gallery's template IDs as one object, so that a starting worker need not read the whole event log.
//!
//! It contains face IDs, not signatures: those stay in the signatures' table, so erasing a person need not touch the snapshot. A
//! missing or outdated snapshot only costs start-up time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use sparks_domain::{EventId, FaceId, Lane, Position, RecordedEvent, Seq, Version};

use crate::{Content, Objects, ObjectsError, PutMode};

/// The IDs of all templates up to a position of the event log. The JSON form is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GallerySnapshot {
    v: Version<1>,
    /// The last identity event of the snapshot. A log with another event at this position is another log.
    identity: (Seq, EventId),
    position: BTreeMap<Lane, Seq>,
    templates: Vec<FaceId>,
}

impl GallerySnapshot {
    /// Creates a snapshot of these templates up to this position and this identity event.
    pub(crate) fn new(position: &Position, identity: (Seq, EventId), templates: Vec<FaceId>) -> Self {
        Self { v: Version, identity, position: position.lanes().collect(), templates }
    }

    /// Whether it belongs to the log with these identity events and heads.
    pub(crate) fn matches_log(&self, events: &[RecordedEvent], heads: &Position) -> bool {
        let (seq, id) = &self.identity;
        let has_event = events.iter().any(|recorded| recorded.seq == *seq && recorded.id == *id);
        has_event && self.position.iter().all(|(lane, seq)| heads.in_lane(*lane) >= *seq)
    }

    /// Returns the position up to which it is complete.
    pub fn position(&self) -> Position {
        self.position.iter().map(|(lane, seq)| (*lane, *seq)).collect()
    }

    /// Returns the IDs of the templates.
    pub fn templates(&self) -> &[FaceId] {
        &self.templates
    }
}

/// Reads and writes the snapshot object.
pub struct SnapshotStore {
    objects: Arc<dyn Objects>,
    key: String,
    /// The number of events covered by the last snapshot that was read or attempted to be written.
    covered: AtomicU64,
}

/// Enough for the IDs of ten million templates.
const MAX_BYTES: u64 = 1 << 29;
/// Reading fewer new events than this takes less time than writing a snapshot.
const MIN_NEW_EVENTS: u64 = 1000;

impl SnapshotStore {
    /// Creates a store for the snapshot with this key.
    pub fn new(objects: Arc<dyn Objects>, key: String) -> Self {
        Self { objects, key, covered: AtomicU64::new(0) }
    }

    /// Returns the snapshot. `None` if there is none, or if it cannot be read.
    pub(crate) async fn read(&self) -> Option<GallerySnapshot> {
        let bytes = match self.objects.get(&self.key, MAX_BYTES).await {
            Ok(object) => object.bytes,
            Err(ObjectsError::NotFound(_)) => return None,
            Err(error) => {
                tracing::warn!(key = self.key, %error, "failed to read the gallery snapshot; reading the whole event log");
                return None;
            }
        };
        match serde_json::from_slice::<GallerySnapshot>(&bytes) {
            Ok(snapshot) => {
                self.covered.store(snapshot.position().events(), Ordering::Relaxed);
                Some(snapshot)
            }
            Err(error) => {
                tracing::warn!(key = self.key, %error, "failed to parse the gallery snapshot; reading the whole event log");
                None
            }
        }
    }

    /// Whether enough events are new at this position to write a snapshot.
    pub(crate) fn is_worth_writing(&self, position: &Position, templates: usize) -> bool {
        let min_new_events = MIN_NEW_EVENTS.max(templates as u64 / 8);
        position.events() >= self.covered.load(Ordering::Relaxed) + min_new_events
    }

    /// Whether no event is new at this position.
    pub(crate) fn is_current(&self, position: &Position) -> bool {
        position.events() <= self.covered.load(Ordering::Relaxed)
    }

    /// Writes the snapshot. A failed write counts as covered, so that it is attempted again only after many more events.
    pub(crate) async fn write(&self, snapshot: &GallerySnapshot) -> Result<(), ObjectsError> {
        self.covered.store(snapshot.position().events(), Ordering::Relaxed);
        let bytes = serde_json::to_vec(snapshot).unwrap_or_default();
        let content = Content { content_type: "application/json", cache_control: "no-cache" };
        self.objects.put(&self.key, bytes, content, PutMode::Replace).await.map(drop)
    }
}
