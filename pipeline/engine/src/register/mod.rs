//! Who is who: joining persons, taking that back, and looking again at faces that nobody knew.

mod consolidate;
mod follow;
mod merge;
mod review;

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use sparks_domain::{EventId, Identity, People, PersonId, Policy, Projection, Recorded, Scale};

use crate::{
    Clock, CommitError, GalleryIndex, IndexError, Maintenance, Objects, ObjectsError, Publisher, StoreError,
    shown::Shown, stages::notices,
};

use self::review::Round;
pub use follow::Followed;
pub use merge::Merged;

/// Keeps track of who is who. Every change is an event; photos follow it in steps that may be interrupted and gone on with.
pub struct Register {
    store: Arc<dyn Maintenance>,
    objects: Arc<dyn Objects>,
    index: Arc<GalleryIndex>,
    publisher: Arc<dyn Publisher>,
    clock: Arc<dyn Clock>,
    rules: Rules,
    /// Up to which identity event photos have followed once, as far as an index showed them.
    swept: AtomicU64,
    /// Where looking again at the faces that nobody knew stands.
    round: Mutex<Round>,
}

/// What the operator has settled.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When a face is somebody.
    pub policy: Policy,
    /// How to read the similarities of each model; those of a model without a scale are left alone.
    pub scale: fn(&str) -> Option<Scale>,
    /// How events become rows.
    pub projection: Projection,
    /// Who the log says decided.
    pub actor: String,
    /// How long an index of the table may lag behind it, at the most.
    pub lag: Duration,
}

/// Why nobody is somebody else.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Nobody has this number.
    #[error("there is no {0}: see `sparks query persons`")]
    Unknown(PersonId),
    /// Two names for one.
    #[error("{0} is {1} already: see `sparks persons merges`")]
    Already(PersonId, PersonId),
    /// Two faces in one photo are two persons.
    #[error("{0} and {1} are seen in one photo, as different faces: join them all the same with --force")]
    SeenTogether(PersonId, PersonId),
    /// No such event.
    #[error("event {0} is not a merge: see `sparks persons merges`")]
    NotAMerge(EventId),
    /// Somebody else is faster each time.
    #[error("persons keep changing: try again")]
    Contended,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The commit was refused.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The bucket did not answer.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

/// What was found out about persons once photos were in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tidied {
    /// Persons who are somebody else.
    pub joined: Vec<Merged>,
    /// How many faces are somebody, after all.
    pub recognised: usize,
    /// Whether something is left for another time.
    pub more: bool,
}

/// Rows are read this many at a time.
const PAGE: usize = 256;

impl Register {
    /// Keeps this store's register.
    pub fn new(
        store: Arc<dyn Maintenance>,
        objects: Arc<dyn Objects>,
        index: Arc<GalleryIndex>,
        publisher: Arc<dyn Publisher>,
        clock: Arc<dyn Clock>,
        rules: Rules,
    ) -> Self {
        let (swept, round) = (AtomicU64::default(), Mutex::default());
        Self { store, objects, index, publisher, clock, rules, swept, round }
    }

    /// Tells others what was recorded. Nobody waits for it: the log has it, whoever hears of it.
    async fn announce(&self, recorded: &[Recorded]) {
        let notices: Vec<_> = recorded.iter().flat_map(notices).collect();
        if let Err(error) = self.publisher.publish(&notices).await {
            tracing::warn!(%error, "others were not told");
        }
    }

    /// Once photos are in: says who is one, if it may, lets the photos follow, and looks again at some of the faces that nobody
    /// knew.
    pub async fn tidy(&self, join: bool) -> Result<Tidied, RegisterError> {
        let joined = if join { self.consolidate().await? } else { Vec::new() };
        let followed = self.follow(|_| ()).await?;
        let reviewed = self.review_some().await?;
        Ok(Tidied { joined, recognised: reviewed.recognised, more: followed.again || reviewed.more })
    }

    fn known(&self) -> (People, Identity) {
        let known = self.index.known();
        (known.people.clone(), known.identity.clone())
    }

    fn shown(&self) -> Shown<'_> {
        Shown { store: self.store.as_ref(), projection: self.rules.projection }
    }
}

impl From<IndexError> for RegisterError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => Self::Store(error),
            error => Self::Store(StoreError::Unavailable(error.to_string())),
        }
    }
}
