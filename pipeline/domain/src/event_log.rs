//! Lanes and positions of the event log, and an event as the log stores it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{Event, EventId, Timestamp};

/// An event with its position, actor and time. Never changes once recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// Its lane.
    pub lane: Lane,
    /// Its sequence number within the lane.
    pub seq: Seq,
    /// Its ID.
    pub id: EventId,
    /// The program or user that decided.
    pub actor: String,
    /// When it was decided.
    pub when: Timestamp,
    /// The event.
    pub event: Event,
}

/// A part of the log with its own order. One lane holds the events about persons; all events about one photo share a
/// lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane(pub u16);

impl Lane {
    /// The lane of events about persons. A log without other lanes has all events here.
    pub const IDENTITY: Self = Self(0);
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A sequence number within a lane: 1 is the first event, 0 is before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How far a reader of the log has read: the last sequence number in every lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position(BTreeMap<Lane, Seq>);

impl Position {
    /// Returns the position at `seq` in this lane and at the start of all others.
    pub fn at(lane: Lane, seq: Seq) -> Self {
        let mut position = Self::default();
        position.advance(lane, seq);
        position
    }

    /// Returns the last event read in this lane.
    pub fn in_lane(&self, lane: Lane) -> Seq {
        self.0.get(&lane).copied().unwrap_or_default()
    }

    /// Marks the lane as read up to `seq`.
    pub fn advance(&mut self, lane: Lane, seq: Seq) {
        if seq > self.in_lane(lane) {
            self.0.insert(lane, seq);
        }
    }

    /// Marks the event and all before it in its lane as read.
    pub fn advance_past(&mut self, recorded: &RecordedEvent) {
        self.advance(recorded.lane, recorded.seq);
    }

    /// Returns whether the event has been read.
    pub fn covers(&self, recorded: &RecordedEvent) -> bool {
        recorded.seq <= self.in_lane(recorded.lane)
    }

    /// Returns the number of events read.
    pub fn events(&self) -> u64 {
        self.0.values().map(|seq| seq.0).sum()
    }

    /// Returns the lanes of which something has been read, each with the last event read.
    pub fn lanes(&self) -> impl Iterator<Item = (Lane, Seq)> {
        self.0.iter().map(|(lane, seq)| (*lane, *seq))
    }
}

impl FromIterator<(Lane, Seq)> for Position {
    fn from_iter<I: IntoIterator<Item = (Lane, Seq)>>(lanes: I) -> Self {
        let mut position = Self::default();
        lanes.into_iter().for_each(|(lane, seq)| position.advance(lane, seq));
        position
    }
}
