//! What came of a photo, and what to tell the queue.

use std::time::Duration;

use sparks_domain::{Email, ImageId, PhotoState, Rejection, Source};

use super::Committed;
use crate::{AnalyzeError, CommitError, IndexError, ObjectsError, Settlement, StoreError};

/// A photo that is done with. Only this can be acknowledged.
#[derive(Debug)]
pub enum Outcome {
    /// Decided and committed now.
    Committed(Committed),
    /// Committed before; what follows a commit was seen to again.
    AlreadyCommitted,
    /// It cannot be taken, and the log says why.
    Rejected(Rejection),
    /// The log speaks of a newer version of the photo.
    Outdated,
}

/// Why a photo is not done with, by what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Trying again helps.
    #[error("{0}")]
    Transient(String),
    /// Something that somebody else makes is not there yet.
    #[error("{0}")]
    NotYet(String),
    /// Only a human can help.
    #[error("{0}")]
    Poison(String),
}

/// Why a stage did not hand on.
#[derive(Debug)]
pub(super) enum Setback {
    /// The photo cannot be taken: to be recorded.
    Unfit(Box<Unfit>),
    /// The photo is not done with.
    Failed(Failure),
}

/// A photo that cannot be taken, and why.
#[derive(Debug)]
pub(super) struct Unfit {
    pub image: ImageId,
    pub uploader: Email,
    pub source: Source,
    pub state: Option<PhotoState>,
    pub reason: Rejection,
}

/// What to tell the queue about a delivery that was received `receives` times, out of at most `max_receives`.
pub fn settlement(result: &Result<(), Failure>, receives: u32, max_receives: u32) -> Settlement {
    match result {
        Ok(()) => Settlement::Done,
        Err(Failure::Transient(_) | Failure::NotYet(_)) if receives < max_receives => {
            Settlement::Retry(Duration::from_millis(200) * 2_u32.saturating_pow(receives.min(8)))
        }
        Err(failure) => Settlement::DeadLetter { reason: failure.to_string() },
    }
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Transient(error.to_string()),
            StoreError::Unreadable(_) => Self::Poison(error.to_string()),
        }
    }
}

impl From<ObjectsError> for Failure {
    fn from(error: ObjectsError) -> Self {
        match error {
            ObjectsError::NotFound(_) => Self::NotYet(error.to_string()),
            ObjectsError::Unavailable { .. } => Self::Transient(error.to_string()),
            ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_) => Self::Poison(error.to_string()),
        }
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => error.into(),
            IndexError::Unavailable(_) => Self::Transient(error.to_string()),
        }
    }
}

impl From<AnalyzeError> for Failure {
    fn from(error: AnalyzeError) -> Self {
        match error {
            AnalyzeError::Unavailable(_) => Self::Transient(error.to_string()),
            AnalyzeError::Crashed(_) => Self::Poison(error.to_string()),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => error.into(),
            CommitError::RowMissing(_) => Self::NotYet(error.to_string()),
            CommitError::PhotoMoved | CommitError::IdentityMoved | CommitError::NumberTaken(_) => {
                Self::Transient(error.to_string())
            }
        }
    }
}

/// Whatever a port says in a stage is a failure of the stage.
macro_rules! setbacks {
    ($($error:ty),*) => {$(
        impl From<$error> for Setback {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )*};
}
setbacks!(StoreError, ObjectsError, IndexError, AnalyzeError, CommitError);
