//! Everything a photo needs on its way.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sparks_domain::{Policy, Projection};

use crate::{Clock, Cpu, Darkroom, FaceAnalyzer, FaceIndex, Meter, Objects, Publisher, Store};

/// The way of a photo, from its message to its rows. See `stages/process.rs` for the story.
pub struct Pipeline {
    pub(crate) ports: Ports,
    pub(crate) cpu: Cpu,
    pub(crate) rules: Rules,
    conflicts: AtomicU64,
}

/// Whom the pipeline talks to.
#[derive(Clone)]
pub struct Ports {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// Table, log and signatures.
    pub store: Arc<dyn Store>,
    /// Pixels.
    pub darkroom: Arc<dyn Darkroom>,
    /// Who looks for faces.
    pub analyzer: Arc<dyn FaceAnalyzer>,
    /// Who knows persons.
    pub index: Arc<dyn FaceIndex>,
    /// Who tells others.
    pub publisher: Arc<dyn Publisher>,
    /// Who measures.
    pub meter: Arc<dyn Meter>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What the operator has settled.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When a face is somebody.
    pub policy: Policy,
    /// How events become rows.
    pub projection: Projection,
    /// The largest original.
    pub max_bytes: u64,
    /// Who the log says decided.
    pub actor: String,
    /// The bucket's name, as messages and notices call it.
    pub bucket: String,
    /// What others are told.
    pub announcements: Announcements,
}

/// What others are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcements {
    /// That the pictures of a photo are made.
    pub thumbnails: bool,
    /// Everything the log says.
    pub events: bool,
}

impl Pipeline {
    /// A pipeline with these ports on these cores.
    pub fn new(ports: Ports, cpu: Cpu, rules: Rules) -> Self {
        Self { ports, cpu, rules, conflicts: AtomicU64::new(0) }
    }

    /// How many commits met somebody else's and had to be decided again.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    /// Who makes its pictures.
    pub fn darkroom(&self) -> Arc<dyn Darkroom> {
        Arc::clone(&self.ports.darkroom)
    }

    pub(crate) fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }
}
