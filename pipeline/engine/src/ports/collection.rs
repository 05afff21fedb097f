//! Known faces that a service keeps.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{Candidate, FaceBox, FaceId, ImageId, PersonId, Signature};

use super::{IndexError, Pixels};

/// A service that keeps known faces and finds the nearest. What it is taught is found after a while, not at once.
#[async_trait]
pub trait Collection: Send + Sync {
    /// The `most` nearest persons it knows, as they were taught, nearest first, nobody twice. Nobody where it sees no face.
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError>;

    /// How alike the face is to these faces, which the service may not have learnt yet: only those it can tell about. Asked
    /// where signatures do not tell.
    async fn compare(&self, probe: &Probe, others: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError>;

    /// From now on persons are known by these faces. Where they may have been taught before (`again`), nobody is known by the
    /// same face twice.
    async fn learn(&self, lessons: &[Lesson], again: bool) -> Result<(), IndexError>;

    /// From now on all these persons, who are one, are known by this face and no other; where the service sees no face in it, by
    /// what they were known by before.
    async fn replace(&self, lesson: &Lesson, persons: &[PersonId]) -> Result<(), IndexError>;

    /// From now on these persons are known by no face in this photo, where the service tells one photo from another.
    async fn unlearn(&self, photo: &ImageId, persons: &[PersonId]) -> Result<(), IndexError>;

    /// From now on these persons are known by nothing.
    async fn forget(&self, persons: &[PersonId]) -> Result<(), IndexError>;

    /// Whether it can be asked now.
    async fn check(&self) -> Result<(), IndexError>;
}

/// A face in its photo.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The photo.
    pub pixels: Arc<Pixels>,
    /// Where the face is.
    pub bounds: FaceBox,
    /// Where other faces are: a service that looks at the largest must not look at these.
    pub others: Vec<FaceBox>,
    /// The model that made the signature.
    pub model: String,
    /// What it looks like, where somebody can tell.
    pub signature: Option<Signature>,
}

impl Probe {
    /// A face of which nobody has said what it looks like.
    pub fn unsigned(pixels: Arc<Pixels>, bounds: FaceBox, others: Vec<FaceBox>) -> Self {
        Self { pixels, bounds, others, model: String::new(), signature: None }
    }
}

/// A face that a person is to be known by.
#[derive(Debug, Clone)]
pub struct Lesson {
    /// Who.
    pub person: PersonId,
    /// Which face.
    pub face: FaceId,
    /// Whether nothing else tells the service of this person.
    pub is_first: bool,
    /// What it looks like.
    pub probe: Probe,
}
