//! Whom a face is like.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{Identity, Merges, Person, PersonId, Search, SeenFace};

use super::StoreError;

/// Searches the known persons: a gallery in memory, or a service.
#[async_trait]
pub trait FaceIndex: Send + Sync {
    /// Whom each face is like, and up to which identity event the answer is complete.
    async fn search(&self, faces: &[SeenFace]) -> Result<Found, IndexError>;

    /// Learns what has been committed since, by anybody. Called after a conflict, before the next search.
    async fn refresh(&self) -> Result<(), IndexError>;

    /// Who turned out to be whom, as of the last time it learnt.
    fn merges(&self) -> Arc<Merges>;

    /// What is known of a person, as of the last time it learnt.
    fn standing(&self, person: PersonId) -> Standing;

    /// Up to which identity event it has learnt.
    fn identity(&self) -> Identity;
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
    /// Trying later may help.
    #[error("the face index is not available: {0}")]
    Unavailable(String),
    /// The log it learns from did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}
