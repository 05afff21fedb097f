//! Templates that a face service stores.

use std::{collections::BTreeMap, sync::Arc};

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

    /// Removes the templates of these persons that come from this photo, where the service stores the photo of a template.
    async fn remove_photo(&self, photo: &ImageId, persons: &[PersonId]) -> Result<(), IndexError>;

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
