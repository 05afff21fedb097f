//! Reader levels: which releases can read a log.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Version;
use crate::Seq;

/// A reader level of the log. Every stored form (a type of event, a version, a field that changes a meaning, a way to store it)
/// belongs to a level. It is written only to logs of that level or a higher one, so that all workers can read what is there
/// during a rolling upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u32);

impl Level {
    /// The level of everything that was released before logs had a level, and of a log that records none.
    pub const FIRST: Self = Self(1);
    /// The highest level that this release reads and writes.
    pub const MAX: Self = Self(2);
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reader level of the log was raised. Releases that cannot read the level stop at this event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRaised {
    /// Schema version.
    pub v: Version<1>,
    /// The level from now on. Never lower than before.
    pub level: Level,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}
