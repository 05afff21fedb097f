//! Why work is not done, by what helps.

use crate::{AnalyzeError, CommitError, DarkroomError, IndexError, Malformed, ObjectsError, PublishError, StoreError};

/// Work that is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of reason.
    pub cause: Cause,
    /// The reason, for people.
    pub message: String,
}

/// Kinds of reasons, as dead letters are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Something we depend on did not answer.
    Unavailable,
    /// Something we depend on has too much to do.
    Busy,
    /// We may not do what every message needs: an outage until somebody grants it.
    Denied,
    /// Others were faster, again and again.
    Contended,
    /// The platform has not made the photo's row.
    NoImageRow,
    /// The platform has not made the user's row.
    NoUserRow,
    /// The object is not there.
    NoObject,
    /// The object is closed to us, and others are not.
    ForbiddenObject,
    /// The message says nothing we know.
    Malformed,
    /// The message names an object that is not called like one of ours.
    BadKey,
    /// The message speaks of another bucket.
    OtherBucket,
    /// Somebody wants something deleted that is not theirs.
    NotTheirs,
    /// A fault of ours, or data that cannot be read.
    Fault,
    /// The worker died with the message, each time.
    WorkerDied,
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Trying again.
    Transient,
    /// Waiting until somebody else has made something.
    NotYet,
    /// Waiting until there is less to do.
    Busy,
    /// Only a human.
    Poison,
}

impl Cause {
    const ALL: [Self; 14] = [
        Self::Unavailable,
        Self::Busy,
        Self::Denied,
        Self::Contended,
        Self::NoImageRow,
        Self::NoUserRow,
        Self::NoObject,
        Self::ForbiddenObject,
        Self::Malformed,
        Self::BadKey,
        Self::OtherBucket,
        Self::NotTheirs,
        Self::Fault,
        Self::WorkerDied,
    ];

    /// What helps against it.
    pub fn class(self) -> Class {
        match self {
            Self::Unavailable | Self::Denied | Self::Contended => Class::Transient,
            // It may be opened while we try; after that, a human has to.
            Self::ForbiddenObject => Class::Transient,
            Self::NoImageRow | Self::NoUserRow | Self::NoObject => Class::NotYet,
            Self::Busy => Class::Busy,
            Self::Malformed | Self::BadKey | Self::OtherBucket => Class::Poison,
            Self::NotTheirs | Self::Fault | Self::WorkerDied => Class::Poison,
        }
    }

    /// Its name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::Denied => "denied",
            Self::Contended => "contended",
            Self::NoImageRow => "no-image-row",
            Self::NoUserRow => "no-user-row",
            Self::NoObject => "no-object",
            Self::ForbiddenObject => "forbidden-object",
            Self::Malformed => "malformed",
            Self::BadKey => "bad-key",
            Self::OtherBucket => "other-bucket",
            Self::NotTheirs => "not-theirs",
            Self::Fault => "fault",
            Self::WorkerDied => "worker-died",
        }
    }

    /// The cause with this name.
    pub fn named(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.code() == code)
    }

    /// All names, for people who have to choose one.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::code)
    }
}

impl Failure {
    /// A failure of this kind.
    pub fn new(cause: Cause, message: impl ToString) -> Self {
        Self { cause, message: message.to_string() }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::new(cause(&malformed), malformed)
    }
}

fn cause(malformed: &Malformed) -> Cause {
    match malformed {
        Malformed::InRecord { malformed, .. } => cause(malformed),
        Malformed::BadKey { .. } => Cause::BadKey,
        Malformed::OtherBucket { .. } => Cause::OtherBucket,
        _ => Cause::Malformed,
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let cause = match error {
            StoreError::Unavailable(_) => Cause::Unavailable,
            StoreError::Busy(_) => Cause::Busy,
            StoreError::Denied(_) => Cause::Denied,
            StoreError::Unreadable(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<ObjectsError> for Failure {
    fn from(error: ObjectsError) -> Self {
        let cause = match error {
            ObjectsError::NotFound(_) => Cause::NoObject,
            ObjectsError::Forbidden { .. } => Cause::ForbiddenObject,
            ObjectsError::Denied { .. } => Cause::Denied,
            ObjectsError::Unavailable { .. } => Cause::Unavailable,
            ObjectsError::Busy { .. } => Cause::Busy,
            ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => error.into(),
            // One operation of a service may be away while another answers: no message is to blame.
            IndexError::Unavailable(_) | IndexError::Busy(_) => Self::new(Cause::Busy, error),
            IndexError::Denied(_) => Self::new(Cause::Denied, error),
            IndexError::Refused(_) => Self::new(Cause::Fault, error),
        }
    }
}

impl From<AnalyzeError> for Failure {
    fn from(error: AnalyzeError) -> Self {
        let cause = match error {
            AnalyzeError::Unavailable(_) => Cause::Unavailable,
            AnalyzeError::Busy(_) => Cause::Busy,
            AnalyzeError::Denied(_) => Cause::Denied,
            AnalyzeError::Refused(_) | AnalyzeError::Crashed(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

/// Where no photo is to be blamed: a picture that we made ourselves and cannot work on is a fault for a human.
impl From<DarkroomError> for Failure {
    fn from(error: DarkroomError) -> Self {
        let cause = match error {
            DarkroomError::Unavailable(_) => Cause::Unavailable,
            DarkroomError::Rejected(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        let cause = match error {
            PublishError::Unavailable(_) => Cause::Unavailable,
            PublishError::Busy(_) => Cause::Busy,
            PublishError::Denied(_) => Cause::Denied,
        };
        Self::new(cause, error)
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => error.into(),
            CommitError::RowMissing(_) => Self::new(Cause::NoImageRow, error),
            CommitError::PhotoMoved | CommitError::IdentityMoved | CommitError::NumberTaken(_) => {
                Self::new(Cause::Contended, error)
            }
        }
    }
}
