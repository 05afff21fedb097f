//! An event as the log holds it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Event, EventId, Timestamp};

/// A place in the log: 1 is the first event, 0 is before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An event with its place, its author and its time. Nothing in it ever changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place in its lane.
    pub seq: Seq,
    /// Its name.
    pub id: EventId,
    /// Who decided.
    pub actor: String,
    /// When it was decided.
    pub when: Timestamp,
    /// What happened.
    pub event: Event,
}
