//! Results of processing a request.

use sparks_domain::{Email, ImageId, PhotoState, Rejection, SourceObject};

use super::CommitReceipt;
use crate::{AnalyzeError, CommitError, Failure, IndexError, ObjectsError, StoreError};

/// The result of a request that is done. Only a message with outcomes for all its requests can be acknowledged.
#[derive(Debug)]
pub enum Outcome {
    /// Committed now.
    Committed(CommitReceipt),
    /// Committed before; the effects of that commit were repeated.
    AlreadyCommitted,
    /// Rejected; the log records the reason.
    Rejected(Rejection),
    /// The log has a newer version of the photo.
    Outdated,
    /// The photo is deleted, by this request or an earlier one.
    Deleted,
    /// There was nothing to do, for this reason.
    Ignored(String),
}

impl Outcome {
    /// Returns its name, as metrics and logs show it.
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

/// Reasons why a stage does not pass the photo on to the next.
#[derive(Debug)]
pub(super) enum StageError {
    /// The photo is rejected, which has to be committed.
    Rejected(Box<RejectedPhoto>),
    /// The photo is deleted.
    Deleted,
    /// Conflict: another worker committed the photo or stored its variants. Begin again before the original is read.
    Moved,
    /// The stage failed.
    Failed(Failure),
}

/// A rejected photo.
#[derive(Debug)]
pub(super) struct RejectedPhoto {
    pub image: ImageId,
    pub uploader: Email,
    pub source: SourceObject,
    pub state: Option<PhotoState>,
    pub reason: Rejection,
}

impl From<Failure> for StageError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// An error of a port is a failure of the stage.
macro_rules! port_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for StageError {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )*};
}
port_errors!(StoreError, ObjectsError, IndexError, AnalyzeError, CommitError);
