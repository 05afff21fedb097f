//! Sends transactions, with retries after conflicts and throttling.

use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, TransactWriteItem},
};
use sparks_engine::StoreError;

use super::transaction_plan::Action;
use crate::{
    error::AwsError,
    retry::{backoff, log_retry},
};

/// Errors of a transaction, which then has written nothing.
#[derive(Debug)]
pub(crate) enum TransactionError {
    /// Conditions failed: a reason for each action.
    ConditionFailed(Vec<CancellationReason>),
    /// The request failed.
    Store(StoreError),
}

/// Cancellation reasons of a conflict with another transaction, or of throttling.
const RETRYABLE_REASONS: [&str; 4] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"];

/// Writes all of these actions or none.
pub(crate) async fn transact(client: &aws_sdk_dynamodb::Client, actions: &[Action]) -> Result<(), TransactionError> {
    let mut backoff = backoff();
    loop {
        let writes: Vec<TransactWriteItem> = actions.iter().map(|action| action.write.clone()).collect();
        // The SDK adds a client request token, which makes its own retries idempotent.
        let Err(error) = client.transact_write_items().set_transact_items(Some(writes)).send().await else {
            return Ok(());
        };
        let cancelled = match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(e)) => Some(e.cancellation_reasons().to_vec()),
            _ => None,
        };
        let error = AwsError::from(error);
        let is_retryable = match &cancelled {
            Some(reasons) if has(reasons, &["ConditionalCheckFailed"]) => {
                return Err(TransactionError::ConditionFailed(reasons.clone()));
            }
            Some(reasons) => has(reasons, &RETRYABLE_REASONS),
            None => error.is_throttled(),
        };
        if !is_retryable {
            return Err(TransactionError::Store(failure(cancelled.as_deref(), error)));
        }
        match backoff.next() {
            Some(pause) => {
                log_retry(&error, pause);
                tokio::time::sleep(pause).await;
            }
            None => return Err(TransactionError::Store(error.into())),
        }
    }
}

fn has(reasons: &[CancellationReason], codes: &[&str]) -> bool {
    reasons.iter().any(|reason| reason.code().is_some_and(|code| codes.contains(&code)))
}

/// Classifies an error that is not retried. A cancellation or validation error is about the request itself: a retry would fail
/// again.
fn failure(cancelled: Option<&[CancellationReason]>, error: AwsError) -> StoreError {
    let first = cancelled.and_then(|reasons| reasons.iter().find(|reason| reason.code() != Some("None")));
    match first {
        Some(reason) => StoreError::Unreadable(format!(
            "{}: {}",
            reason.code().unwrap_or("transaction cancelled"),
            reason.message().unwrap_or("no reason given")
        )),
        None if error.has_code(&["ValidationException"]) => StoreError::Unreadable(error.to_string()),
        None => error.into(),
    }
}
