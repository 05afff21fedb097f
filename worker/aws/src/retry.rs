//! Retries of throttled AWS calls.
//!
//! The SDK itself retries transport errors. What it gives up on is retried here only if the service throttled the call.

use std::{error::Error, future::Future, time::Duration};

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use backon::{BackoffBuilder, ExponentialBuilder};

use crate::error::AwsError;

/// Calls, and calls again with backoff while the service throttles the call.
pub(crate) async fn with_retry<T, E, Fut>(call: impl Fn() -> Fut) -> Result<T, AwsError>
where
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + 'static,
{
    let mut backoff = backoff();
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => AwsError::from(error),
        };
        match backoff.next().filter(|_| error.is_throttled()) {
            Some(pause) => {
                log_retry(&error, pause);
                tokio::time::sleep(pause).await;
            }
            None => {
                if error.is_throttled() {
                    let AwsError { service, operation, .. } = error;
                    tracing::warn!(service, operation, %error, "throttled, retries exhausted");
                }
                return Err(error);
            }
        }
    }
}

/// The error codes of another request that writes the same item.
const CONFLICT_CODES: [&str; 3] =
    ["TransactionConflict", "TransactionConflictException", "ReplicatedWriteConflictException"];

/// Logs that a call is about to be retried.
pub(crate) fn log_retry(error: &AwsError, pause: Duration) {
    let reason = match error {
        error if error.has_code(&CONFLICT_CODES) => "conflict",
        error if error.is_throttled() => "throttled",
        _ => "unavailable",
    };
    let (service, operation, pause_ms) = (error.service, error.operation, pause.as_millis() as u64);
    tracing::debug!(service, operation, reason, pause_ms, %error, "retry after backoff");
}

/// Calls again for up to 90 seconds while the call fails because a resource or permission was created a moment ago and is not
/// visible to the service yet (eventual consistency).
pub(crate) async fn retry_until_visible<T, E, Fut>(
    call: impl Fn() -> Fut,
    is_not_visible_yet: impl Fn(&AwsError) -> bool,
) -> Result<T, AwsError>
where
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + 'static,
{
    const PAUSE: Duration = Duration::from_secs(2);
    const MAX_RETRIES: u32 = 45;
    for _ in 0..MAX_RETRIES {
        match with_retry(&call).await {
            Err(error) if is_not_visible_yet(&error) => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
    with_retry(&call).await
}

/// Returns pauses of exponential backoff with full jitter: about a quarter of a minute in all.
pub(crate) fn backoff() -> impl Iterator<Item = Duration> {
    let bounds = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(2.0)
        .with_max_times(20);
    bounds.build().map(|bound| bound.mul_f64(fastrand::f64()))
}
