//! Failures of processing: every cause, the class it belongs to, and what a class means for the message. Only crashes of
//! workers are counted elsewhere, by the queues, since no worker is left to report them (`Cause::WorkerDied`).
//!
//! | class | what helps | settlement |
//! |---|---|---|
//! | transient | a retry | retried with exponential backoff and full jitter; a dead letter after `max_attempts` attempts |
//! | not yet | waiting for another system | deferred without an attempt; a dead letter after `prerequisite_timeout` |
//! | throttled | less load, also less contention with other workers | deferred without an attempt, for as long as it takes |
//! | blocked | an operator, who need not look at the message | deferred without an attempt, for as long as it takes |
//! | poison | an operator | a dead letter at once |
//!
//! Two causes may be an outage, which concerns every message ([`Cause::may_be_outage`]): while a health check of a dependency
//! fails, the message is released without an attempt and no message is received. A missing permission and a log that this version
//! cannot read are always treated as one ([`Cause::is_outage`]).

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_domain::Timestamp;

use crate::{
    AnalyzeError, CommitError, Delivery, DependencyError, ImageError, IndexError, MalformedMessage, ObjectsError,
    PublishError, Settlement, StoreError,
};

/// Work that is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// The reason, for an operator.
    pub message: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(cause: Cause, message: impl ToString) -> Self {
        Self { cause, message: message.to_string() }
    }
}

/// What helps against a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A retry.
    Transient,
    /// Waiting until another system has created something.
    NotYet,
    /// Waiting until there is less load.
    Throttled,
    /// Waiting until an operator allows it.
    Blocked,
    /// An operator.
    Poison,
}

/// Declares [`Cause`] from a table of variant, code in dead letters and class.
macro_rules! causes {
    ($($(#[$doc:meta])+ $cause:ident: $code:literal, $class:ident;)+) => {
        /// The causes of failures. Their codes are stored in dead letters and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[$doc])+ $cause,)+
        }

        impl Cause {
            const ALL: &[Self] = &[$(Self::$cause),+];

            /// Returns the class that decides what happens to the message.
            pub fn class(self) -> Class {
                match self {
                    $(Self::$cause => Class::$class,)+
                }
            }

            /// Returns the code, as dead letters store it.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$cause => $code,)+
                }
            }
        }
    };
}

causes! {
    /// A dependency did not answer.
    Unavailable: "unavailable", Transient;
    /// A dependency limits the rate of requests.
    Throttled: "busy", Throttled;
    /// The worker lacks a permission that every message needs.
    AccessDenied: "denied", Transient;
    /// The log holds an event of a newer release.
    UnreadableLog: "unreadable-log", Transient;
    /// The commit needs a higher level of the log.
    LevelTooLow: "log-level", Blocked;
    /// Other workers committed first, for too long.
    Contended: "contended", Throttled;
    /// The platform has not created the IMAGE row.
    NoImageRow: "no-image-row", NotYet;
    /// The platform has not created the USER row.
    NoUserRow: "no-user-row", NotYet;
    /// The object does not exist.
    NoObject: "no-object", NotYet;
    /// Access to this one object is denied. Transient, because it may be granted while retries last.
    ForbiddenObject: "forbidden-object", Transient;
    /// The message has no known form.
    Malformed: "malformed", Poison;
    /// The message names an object whose key is not that of a photo.
    BadKey: "bad-key", Poison;
    /// The message is about another bucket.
    OtherBucket: "other-bucket", Poison;
    /// The sender asks to delete a photo of another user.
    NotTheirs: "not-theirs", Poison;
    /// A bug, or data that this version cannot read.
    Fault: "fault", Poison;
    /// The worker died while it processed the message, each time.
    WorkerDied: "worker-died", Poison;
}

impl Cause {
    /// Returns the cause with this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.code() == code)
    }

    /// Returns all codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|cause| cause.code())
    }

    /// Returns whether the failure may concern every message, which a health check of the dependencies tells.
    pub fn may_be_outage(self) -> bool {
        matches!(self, Self::Unavailable | Self::Throttled)
    }

    /// Returns whether the failure is an outage of this worker, which no health check reveals for certain.
    pub fn is_outage(self) -> bool {
        matches!(self, Self::AccessDenied | Self::UnreadableLog)
    }

    /// Returns whether the rest of the message's requests would fail alike, so that none is tried.
    pub fn concerns_all_requests(self) -> bool {
        self.may_be_outage() || self.is_outage()
    }
}

/// How often and for how long a message is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of failed attempts after which a message becomes a dead letter.
    pub max_attempts: u32,
    /// How long a message waits for what another system has to create.
    pub prerequisite_timeout: Duration,
}

impl RetryPolicy {
    const MIN_BACKOFF: Duration = Duration::from_millis(200);
    const MAX_BACKOFF: Duration = Duration::from_secs(60);
    /// Bounds of the delay for `NotYet`: a quarter of the message's age.
    const MIN_DEFER: Duration = Duration::from_millis(500);
    const MAX_DEFER: Duration = Duration::from_secs(5);
    /// Bounds of the delay for `Throttled` and `Blocked`: a random part of half of the message's age.
    const MIN_THROTTLE: Duration = Duration::from_secs(1);
    const MAX_THROTTLE: Duration = Duration::from_secs(60);

    /// Returns how the lease on this delivery ends after this result.
    pub fn settlement(&self, result: &Result<(), Failure>, delivery: &Delivery, now: Timestamp) -> Settlement {
        let Err(failure) = result else { return Settlement::Acknowledge };
        match failure.cause.class() {
            Class::Transient if delivery.receives < self.max_attempts => Settlement::Retry(backoff(delivery.receives)),
            Class::NotYet if delivery.age(now) < self.prerequisite_timeout => {
                let delay = (delivery.age(now) / 4).clamp(Self::MIN_DEFER, Self::MAX_DEFER);
                Settlement::Defer(delay.min(self.prerequisite_timeout))
            }
            Class::Throttled | Class::Blocked => {
                let delay = (delivery.age(now) / 2).clamp(Self::MIN_THROTTLE, Self::MAX_THROTTLE);
                Settlement::Defer(delay.mul_f64(fastrand::f64()))
            }
            Class::Transient | Class::NotYet | Class::Poison => {
                Settlement::DeadLetter { cause: failure.cause, reason: failure.message.clone() }
            }
        }
    }
}

/// Returns an exponential backoff with full jitter, so that messages that failed together are not retried together
/// (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
fn backoff(attempt: u32) -> Duration {
    let bound = ExponentialBuilder::default()
        .with_factor(2.0)
        .with_min_delay(RetryPolicy::MIN_BACKOFF)
        .with_max_delay(RetryPolicy::MAX_BACKOFF)
        .without_max_times()
        .build()
        .nth(attempt as usize)
        .unwrap_or(RetryPolicy::MAX_BACKOFF);
    bound.mul_f64(fastrand::f64())
}

impl From<&DependencyError> for Cause {
    fn from(error: &DependencyError) -> Self {
        match error {
            DependencyError::Unavailable(_) => Self::Unavailable,
            DependencyError::Throttled(_) => Self::Throttled,
            DependencyError::AccessDenied(_) => Self::AccessDenied,
        }
    }
}

impl From<MalformedMessage> for Failure {
    fn from(malformed: MalformedMessage) -> Self {
        Self::new(malformed_cause(&malformed), malformed)
    }
}

fn malformed_cause(malformed: &MalformedMessage) -> Cause {
    match malformed {
        MalformedMessage::InRecord { malformed, .. } => malformed_cause(malformed),
        MalformedMessage::BadKey { .. } => Cause::BadKey,
        MalformedMessage::OtherBucket { .. } => Cause::OtherBucket,
        _ => Cause::Malformed,
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let cause = match &error {
            StoreError::Dependency(error) => error.into(),
            StoreError::UnreadableLog(_) => Cause::UnreadableLog,
            StoreError::LevelTooLow { .. } => Cause::LevelTooLow,
            StoreError::Unreadable(_) | StoreError::Refused(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<ObjectsError> for Failure {
    fn from(error: ObjectsError) -> Self {
        let cause = match &error {
            ObjectsError::NotFound(_) => Cause::NoObject,
            ObjectsError::Forbidden { .. } => Cause::ForbiddenObject,
            ObjectsError::Dependency { error, .. } => error.into(),
            ObjectsError::TooLarge { .. } | ObjectsError::BadKey(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        let cause = match error {
            IndexError::Store(error) => return error.into(),
            // One operation of a face service may fail while its health check succeeds: no message is to blame for that.
            IndexError::Dependency(DependencyError::Unavailable(_)) => Cause::Throttled,
            IndexError::Dependency(ref error) => error.into(),
            IndexError::Refused(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<AnalyzeError> for Failure {
    fn from(error: AnalyzeError) -> Self {
        let cause = match &error {
            AnalyzeError::Dependency(error) => error.into(),
            AnalyzeError::Refused(_) | AnalyzeError::Panicked(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

/// For images that the worker made itself; a rejected original is not a failure but an outcome.
impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        let cause = match error {
            ImageError::Unavailable(_) => Cause::Unavailable,
            ImageError::Rejected(_) => Cause::Fault,
        };
        Self::new(cause, error)
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        let PublishError::Dependency(dependency) = &error;
        Self::new(dependency.into(), error)
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
