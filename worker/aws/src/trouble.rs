//! What went wrong with a call, by what helps.

use std::{error::Error, fmt, future::Future, time::Duration};

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_engine::{PublishError, QueueError, StoreError};

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What the service calls it; nothing where there was no answer.
    pub code: Option<String>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// For people.
    pub words: String,
}

/// What services say when they have too much to do, or somebody else is at the same thing.
const BUSY: [&str; 14] = [
    "ThrottlingException",
    "ThrottlingError",
    "Throttling",
    "ThrottledException",
    "RequestThrottled",
    "TooManyRequestsException",
    "SlowDown",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "KMSThrottling",
    "KMSThrottlingException",
    "KMS.ThrottlingException",
];

/// What a refusal for want of permissions is called.
const FORBIDDEN: [&str; 24] = [
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    // A key that we may not use, or that nobody may: SNS and SQS each have their own words for it.
    "KMSAccessDenied",
    "KMSAccessDeniedException",
    "KMSDisabled",
    "KMSInvalidState",
    "KMSNotFound",
    "KMSOptInRequired",
    "KMS.AccessDeniedException",
    "KMS.DisabledException",
    "KMS.InvalidStateException",
    "KMS.NotFoundException",
    "KMS.OptInRequired",
    "KmsAccessDenied",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// What is wrong with whoever asks, and not with what they ask for.
const KEYS: [&str; 7] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

impl Trouble {
    /// Whether the service only has too much to do.
    pub fn is_busy(&self) -> bool {
        self.code.as_deref().is_some_and(|code| BUSY.contains(&code)) || matches!(self.status, Some(429 | 503))
    }

    /// Whether what was asked for is not ours to have.
    pub fn is_forbidden(&self) -> bool {
        self.code.as_deref().is_some_and(|code| FORBIDDEN.contains(&code)) || matches!(self.status, Some(401 | 403))
    }

    /// The same, and where it was.
    pub fn in_place(&self, place: &str) -> Self {
        Self { words: format!("{place}: {}", self.words), ..self.clone() }
    }

    /// What happened, and who can help.
    pub fn denial(&self) -> String {
        let remedy = match self.code.as_deref() {
            Some("RequestTimeTooSkewed") => "set the clock of this machine",
            Some(code) if KEYS.contains(&code) => "the keys are wrong or have ended: give the worker others",
            _ => "grant it to the worker's role (docker/cloudformation/roles.yaml has all it needs)",
        };
        format!("{}; {remedy}; `sparks doctor` says what else is missing", self.words)
    }

    /// Whether it is called so.
    pub fn is(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(f)
    }
}

impl<E: ProvideErrorMetadata + Error + 'static> From<SdkError<E>> for Trouble {
    fn from(error: SdkError<E>) -> Self {
        let (code, status) = (error.code().map(str::to_owned), error.raw_response().map(|raw| raw.status().as_u16()));
        let words = match (code.as_deref(), error.message()) {
            (Some(code), Some(message)) if !message.is_empty() => format!("{code}: {message}"),
            (Some(code), _) => code.to_owned(),
            (None, _) => chain(&error),
        };
        Self { code, status, words }
    }
}

/// The causes, the nearest first: what failed without an answer says little by itself.
fn chain(error: &dyn Error) -> String {
    let mut words = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if words.last() != Some(&next) {
            words.push(next);
        }
        source = error.source();
    }
    words.join(": ")
}

/// Calls again what a busy service refuses: it is busy for everybody, so everybody waits a random time (full jitter).
pub(crate) async fn patiently<T, E, Fut>(call: impl Fn() -> Fut) -> Result<T, Trouble>
where
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + 'static,
{
    let mut pauses = pauses();
    loop {
        let trouble = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => Trouble::from(error),
        };
        match pauses.next().filter(|_| trouble.is_busy()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(trouble),
        }
    }
}

/// Calls again what fails only because something was made a moment ago, and is not to be seen everywhere yet.
pub(crate) async fn once_seen<T, E, Fut>(
    call: impl Fn() -> Fut,
    is_early: impl Fn(&Trouble) -> bool,
) -> Result<T, Trouble>
where
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + 'static,
{
    const PAUSE: Duration = Duration::from_secs(2);
    const MOST: u32 = 45;
    for _ in 0..MOST {
        match patiently(&call).await {
            Err(trouble) if is_early(&trouble) => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
    patiently(&call).await
}

/// Random pauses below a bound that doubles: about a quarter of a minute in all.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    let bounds = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(2.0)
        .with_max_times(20);
    bounds.build().map(|bound| bound.mul_f64(fastrand::f64()))
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            trouble if trouble.is_forbidden() => Self::Denied(trouble.denial()),
            trouble if trouble.is_busy() => Self::Busy(trouble.words),
            trouble => Self::Unavailable(trouble.words),
        }
    }
}

impl From<Trouble> for QueueError {
    fn from(trouble: Trouble) -> Self {
        if trouble.is_forbidden() { Self::Denied(trouble.denial()) } else { Self::Unavailable(trouble.words) }
    }
}

impl From<Trouble> for PublishError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            trouble if trouble.is_forbidden() => Self::Denied(trouble.denial()),
            trouble if trouble.is_busy() => Self::Busy(trouble.words),
            trouble => Self::Unavailable(trouble.words),
        }
    }
}
