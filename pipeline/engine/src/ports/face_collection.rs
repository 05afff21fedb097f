//! Templates that a face service stores.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use sparks_domain::{Candidate, FaceBox, FaceId, ImageId, PersonId, Signature};

use super::{IndexError, Pixels};

/// A service that stores templates and finds the nearest, such as a Rekognition collection or a Pinecone index. Enrollment is
/// eventually consistent: a face may not be searchable for some seconds.
#[async_trait]
pub trait FaceCollection: Send + Sync {
    /// Returns at most `most` nearest persons by their enrolled IDs, nearest first, each once. Empty where the service detects no
    /// face in the probe.
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError>;

    /// Returns the similarity of the probe to these faces, which may not be searchable yet, for those that the service can
    /// compare. Called where signatures cannot answer.
    async fn compare(&self, probe: &Probe, others: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError>;

    /// Enrolls these faces. With `again` a service that stores signatures may have them already, and does not store them twice.
    async fn enroll(&self, enrollments: &[Enrollment], again: bool) -> Result<(), IndexError>;

    /// Returns how many templates these persons have, also those that are not searchable yet. Asked where pixels are enrolled: a
    /// template of a signature has an ID of its own, so that none is enrolled twice.
    async fn template_counts(&self, _: &[PersonId]) -> Result<BTreeMap<PersonId, usize>, IndexError> {
        Ok(BTreeMap::new())
    }

    /// Replaces all templates of these persons, who are merged into one, by this face. Where the service detects no face in it,
    /// the templates stay as they are. Returns false where another worker added a template of them at the same time, so that they
    /// have more than this one.
    async fn replace(&self, enrollment: &Enrollment, persons: &[PersonId]) -> Result<bool, IndexError>;

    /// Removes the templates of these persons that come from these faces, where the service stores the face of a template.
    async fn remove_faces(&self, removed: &RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), IndexError>;

    /// Removes all templates of these persons.
    async fn remove_persons(&self, persons: &[PersonId]) -> Result<(), IndexError>;

    /// Checks that the service answers.
    async fn check(&self) -> Result<(), IndexError>;
}

/// A face to search for, in its image.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The pixels of the image.
    pub pixels: Arc<Pixels>,
    /// The box of the face.
    pub bounds: FaceBox,
    /// The boxes of the other faces: a service that takes the largest face must not take one of these.
    pub others: Vec<FaceBox>,
    /// The model that computed the signature.
    pub model: String,
    /// The embedding, where an analyzer computed one.
    pub signature: Option<Signature>,
}

impl Probe {
    /// Creates a probe without a signature.
    pub fn unsigned(pixels: Arc<Pixels>, bounds: FaceBox, others: Vec<FaceBox>) -> Self {
        Self { pixels, bounds, others, model: String::new(), signature: None }
    }
}

/// The faces that a photo no longer has.
#[derive(Debug, Clone)]
pub struct RemovedFaces<'a> {
    /// The photo.
    pub image: &'a ImageId,
    /// Only faces with a lower number: numbers are never used again.
    pub before: u32,
    /// The numbers of those among them that are templates of another model still.
    pub kept: BTreeSet<u16>,
}

impl<'a> RemovedFaces<'a> {
    /// Returns all faces of a photo.
    pub fn all(image: &'a ImageId) -> Self {
        Self::before(image, u32::MAX)
    }

    /// Returns the faces with a lower number.
    pub fn before(image: &'a ImageId, before: u32) -> Self {
        Self { image, before, kept: BTreeSet::new() }
    }

    /// Returns whether this face is removed.
    pub fn contains(&self, face: &FaceId) -> bool {
        face.image == *self.image && u32::from(face.n) < self.before && !self.kept.contains(&face.n)
    }
}

/// A face to enroll as a template of a person.
#[derive(Debug, Clone)]
pub struct Enrollment {
    /// The person.
    pub person: PersonId,
    /// The ID of the face.
    pub face: FaceId,
    /// Whether it is the first template of the person at the service.
    pub is_first: bool,
    /// The face.
    pub probe: Probe,
}
