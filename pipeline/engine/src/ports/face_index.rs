//! Known persons, searched by face.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use sparks_domain::{Candidate, DetectedFace, FaceCandidates, FaceId, IdentityHead, Merges, Person, PersonId};
use tokio::sync::Mutex;

use super::{DependencyError, Enrollment, Pixels, Probe, RemovedFaces, StoreError};

/// Finds the persons nearest to a face: a gallery in memory, or a face service.
#[async_trait]
pub trait FaceSearch: Send + Sync {
    /// Returns the nearest persons of each face, and the identity event up to which the search is complete.
    async fn search(&self, probes: &ProbeSet) -> Result<SearchResult, IndexError>;

    /// Applies the identity events that any worker has committed since the last refresh. Called after a conflict, before the
    /// next search.
    async fn refresh(&self) -> Result<(), IndexError>;

    /// Returns the merges that hold, as of the last refresh.
    fn merges(&self) -> Arc<Merges>;

    /// Returns the status of a person, as of the last refresh.
    fn person_status(&self, person: PersonId) -> PersonStatus;

    /// Returns the identity event and the counter of the last refresh.
    fn identity(&self) -> IdentityHead;

    /// Returns whether each search costs money.
    fn is_paid(&self) -> bool {
        false
    }

    /// Checks that the index answers.
    async fn check(&self) -> Result<(), IndexError> {
        Ok(())
    }
}

/// Adds and removes the templates of persons where the event log alone does not: in a face service. A gallery reads the log and
/// needs none of it, so every default does nothing.
#[async_trait]
pub trait FaceEnrollment: Send + Sync {
    /// Enrolls these faces. Returns whether a service was called. See [`super::FaceCollection::enroll`].
    async fn enroll(&self, _: &[Enrollment], _again: bool) -> Result<bool, IndexError> {
        Ok(false)
    }

    /// Replaces all templates of a person by this one.
    async fn replace(&self, _: &Enrollment) -> Result<(), IndexError> {
        Ok(())
    }

    /// Returns how many templates the person has, where one is enrolled for each person; `None` where any number is right. There are
    /// several where another worker enrolled the person at the same time.
    async fn template_count(&self, _: PersonId) -> Result<Option<usize>, IndexError> {
        Ok(None)
    }

    /// Enrolls these stored faces as further templates of their persons.
    async fn promote(&self, _: &[FaceId]) -> Result<(), IndexError> {
        Ok(())
    }

    /// Removes the templates of these persons that come from these faces.
    async fn remove_faces(&self, _: &RemovedFaces<'_>, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    /// Removes all templates of these persons.
    async fn remove_persons(&self, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }
}

/// Both sides of an index. Implemented for every type that has both.
pub trait FaceIndex: FaceSearch + FaceEnrollment {}

impl<T: FaceSearch + FaceEnrollment> FaceIndex for T {}

/// The faces of one image that are searched for, with the results that a face service has returned: services charge per call,
/// so no call is made twice.
#[derive(Debug)]
pub struct ProbeSet {
    /// The faces.
    pub faces: Vec<DetectedFace>,
    /// The pixels of the image.
    pub pixels: Arc<Pixels>,
    /// The results of a service so far.
    pub cache: Mutex<SearchCache>,
}

/// The results of a face service for the faces of one image, by position in the image.
#[derive(Debug, Default)]
pub struct SearchCache {
    /// The newest persons that the service had returned in searches before the first one for this image: it can find them.
    pub enrolled: Option<BTreeSet<PersonId>>,
    /// The nearest persons of a face.
    pub nearest: BTreeMap<usize, Vec<Candidate>>,
    /// The similarity of a face and a person; `None` where the service found no face to compare.
    pub compared: BTreeMap<(usize, PersonId), Option<f32>>,
}

impl ProbeSet {
    /// Creates a set with an empty cache.
    pub fn new(faces: Vec<DetectedFace>, pixels: Arc<Pixels>) -> Self {
        Self { faces, pixels, cache: Mutex::default() }
    }

    /// Returns the face at this position.
    pub fn probe(&self, position: usize) -> Option<Probe> {
        let face = self.faces.get(position)?;
        let others = self.faces.iter().enumerate().filter(|(n, _)| *n != position).map(|(_, other)| other.bounds);
        Some(Probe {
            pixels: Arc::clone(&self.pixels),
            bounds: face.bounds,
            others: others.collect(),
            model: face.model.clone(),
            signature: face.signature.clone(),
        })
    }
}

/// The status of a person ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonStatus {
    /// Never allocated, or merged into another person.
    Unknown,
    /// A person that photos may be tagged with.
    Known(Person),
    /// Forgotten after the last photo was deleted; the attributes are those before that.
    Forgotten(Person),
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The nearest persons of each face.
    pub search: FaceCandidates,
    /// The state of person allocation that the search includes.
    pub identity: IdentityHead,
}

/// Errors of a face index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index or its service failed.
    #[error("face index {0}")]
    Dependency(#[from] DependencyError),
    /// The service rejects the request for good; an operator must look.
    #[error("face index rejected the request: {0}")]
    Refused(String),
    /// The event log that the index reads failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
