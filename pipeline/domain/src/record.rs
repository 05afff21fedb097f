//! An event as the log holds it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{Event, EventId, Timestamp};

/// A part of the log with an order of its own: what is about persons is in one lane, and so is all that is about one photo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane(pub u16);

impl Lane {
    /// Where persons come and go. A log without other lanes has everything here.
    pub const IDENTITY: Self = Self(0);
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in a lane of the log: 1 is the first event, 0 is before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How far somebody has come, in every lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position(BTreeMap<Lane, Seq>);

impl Position {
    /// Here in this lane, and at the beginning of all others.
    pub fn at(lane: Lane, seq: Seq) -> Self {
        let mut position = Self::default();
        position.pass(lane, seq);
        position
    }

    /// The last event that is behind, in this lane.
    pub fn in_lane(&self, lane: Lane) -> Seq {
        self.0.get(&lane).copied().unwrap_or_default()
    }

    /// Everything up to here is behind, in this lane.
    pub fn pass(&mut self, lane: Lane, seq: Seq) {
        if seq > self.in_lane(lane) {
            self.0.insert(lane, seq);
        }
    }

    /// The event and everything before it in its lane are behind.
    pub fn pass_event(&mut self, recorded: &Recorded) {
        self.pass(recorded.lane, recorded.seq);
    }

    /// Whether the event is behind.
    pub fn is_past(&self, recorded: &Recorded) -> bool {
        recorded.seq <= self.in_lane(recorded.lane)
    }

    /// How many events are behind.
    pub fn events(&self) -> u64 {
        self.0.values().map(|seq| seq.0).sum()
    }

    /// The lanes in which something is behind, and what.
    pub fn lanes(&self) -> impl Iterator<Item = (Lane, Seq)> {
        self.0.iter().map(|(lane, seq)| (*lane, *seq))
    }
}

impl FromIterator<(Lane, Seq)> for Position {
    fn from_iter<I: IntoIterator<Item = (Lane, Seq)>>(lanes: I) -> Self {
        let mut position = Self::default();
        lanes.into_iter().for_each(|(lane, seq)| position.pass(lane, seq));
        position
    }
}

/// An event with its place, its author and its time. Nothing in it ever changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its lane.
    pub lane: Lane,
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
