//! Whom a face is like.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use sparks_domain::{Candidate, FaceId, Identity, ImageId, Merges, Person, PersonId, Search, SeenFace};
use tokio::sync::Mutex;

use super::{Lesson, Pixels, Probe, StoreError};

/// Searches the known persons: a gallery in memory, or a service.
#[async_trait]
pub trait FaceIndex: Send + Sync {
    /// Whom each face is like, and up to which identity event the answer is complete.
    async fn search(&self, looked: &Looked) -> Result<Found, IndexError>;

    /// Learns what has been committed since, by anybody. Called after a conflict, before the next search.
    async fn refresh(&self) -> Result<(), IndexError>;

    /// Who turned out to be whom, as of the last time it learnt.
    fn merges(&self) -> Arc<Merges>;

    /// What is known of a person, as of the last time it learnt.
    fn standing(&self, person: PersonId) -> Standing;

    /// Up to which identity event it has learnt.
    fn identity(&self) -> Identity;

    /// Teaches what the log does not: from now on persons are known by these faces. Says whether anybody was told. See
    /// [`super::Collection::learn`].
    async fn learn(&self, _: &[Lesson], _again: bool) -> Result<bool, IndexError> {
        Ok(false)
    }

    /// Teaches anew: what pictures told of a person is gone, and from now on this one tells.
    async fn relearn(&self, _: &Lesson) -> Result<(), IndexError> {
        Ok(())
    }

    /// From now on persons are known by these kept faces, too.
    async fn promote(&self, _: &[FaceId]) -> Result<(), IndexError> {
        Ok(())
    }

    /// From now on these persons are known by no face in this photo.
    async fn unlearn(&self, _: &ImageId, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    /// From now on these persons are known by nothing.
    async fn forget(&self, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    /// Whether somebody pays for each question.
    fn is_paid(&self) -> bool {
        false
    }

    /// Whether it can be asked now.
    async fn check(&self) -> Result<(), IndexError> {
        Ok(())
    }
}

/// A picture whose faces are found, and what has been asked about them: services count, so nothing is asked twice.
#[derive(Debug)]
pub struct Looked {
    /// The faces.
    pub faces: Vec<SeenFace>,
    /// The picture.
    pub pixels: Arc<Pixels>,
    /// What a service has answered.
    pub answers: Mutex<Answers>,
}

/// What a service has answered about the faces of a picture, by their place.
#[derive(Debug, Default)]
pub struct Answers {
    /// Whom the service had named before it was asked.
    pub found: Option<BTreeSet<PersonId>>,
    /// Whom a face is like.
    pub nearest: BTreeMap<usize, Vec<Candidate>>,
    /// How alike a face and a person are; nothing where the service could not tell.
    pub compared: BTreeMap<(usize, PersonId), Option<f32>>,
}

impl Looked {
    /// Nothing has been asked yet.
    pub fn new(faces: Vec<SeenFace>, pixels: Arc<Pixels>) -> Self {
        Self { faces, pixels, answers: Mutex::default() }
    }

    /// The face at this place of the picture.
    pub fn probe(&self, place: usize) -> Option<Probe> {
        let face = self.faces.get(place)?;
        let others = self.faces.iter().enumerate().filter(|(n, _)| *n != place).map(|(_, other)| other.bounds);
        Some(Probe {
            pixels: Arc::clone(&self.pixels),
            bounds: face.bounds,
            others: others.collect(),
            model: face.model.clone(),
            signature: face.signature.clone(),
        })
    }
}

/// What is known of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has had this number, or they are somebody else now.
    Unknown,
    /// This.
    Known(Person),
    /// Nothing any more; this was.
    Forgotten(Person),
}

/// An answer of the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Whom the faces are like.
    pub search: Search,
    /// Up to where this is everybody.
    pub identity: Identity,
}

/// Why the index did not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It does not answer, or not usefully: waiting helps, however long it takes.
    #[error("the face index is not available: {0}")]
    Unavailable(String),
    /// It has too much to do: waiting helps, however long it takes.
    #[error("the face index has too much to do: {0}")]
    Busy(String),
    /// We may not: whoever grants permissions can help. Nobody's message is at fault.
    #[error("the face index is closed to us: {0}")]
    Denied(String),
    /// It does not take what we ask, and never will: a human must look.
    #[error("the face index refuses: {0}")]
    Refused(String),
    /// The log it learns from did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}
