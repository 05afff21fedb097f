//! What came of a message.

use sparks_domain::{Email, ImageId, PhotoState, Rejection, Source};

use super::Committed;
use crate::{AnalyzeError, CommitError, Failure, IndexError, ObjectsError, StoreError};

/// What a message asked for is done with. Only this can be acknowledged.
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
    /// The photo is gone, by this message or an earlier one.
    Deleted,
    /// There was nothing to do.
    Ignored(String),
}

impl Outcome {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Committed(_) => "committed",
            Self::AlreadyCommitted => "already_committed",
            Self::Rejected(_) => "rejected",
            Self::Outdated => "outdated",
            Self::Deleted => "deleted",
            Self::Ignored(_) => "ignored",
        }
    }
}

/// Why a stage did not hand on.
#[derive(Debug)]
pub(super) enum Setback {
    /// The photo cannot be taken: to be recorded.
    Unfit(Box<Unfit>),
    /// The photo has been deleted.
    Gone,
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

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
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
