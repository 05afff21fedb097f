//! Sends transactions, with retries after conflicts and throttling.

use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, TransactWriteItem},
};
use sparks_engine::StoreError;

use super::transaction_plan::Action;
use crate::{
    error::{AwsError, ErrorClass},
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

/// Writes all of these actions or none.
pub(crate) async fn transact(client: &aws_sdk_dynamodb::Client, actions: &[Action]) -> Result<(), TransactionError> {
    let mut backoff = backoff();
    loop {
        let writes: Vec<TransactWriteItem> = actions.iter().map(|action| action.write.clone()).collect();
        // The SDK adds a client request token, which makes its own retries idempotent.
        let Err(error) = client.transact_write_items().set_transact_items(Some(writes)).send().await else {
            return Ok(());
        };
        let reasons = match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(e)) => e.cancellation_reasons().to_vec(),
            _ => Vec::new(),
        };
        if reasons.iter().any(|reason| reason.code() == Some("ConditionalCheckFailed")) {
            return Err(TransactionError::ConditionFailed(reasons));
        }
        let error = with_reason(AwsError::from(error), &reasons);
        match backoff.next().filter(|_| error.is_throttled()) {
            Some(pause) => {
                log_retry(&error, pause);
                tokio::time::sleep(pause).await;
            }
            // A retry would fail again.
            None if error.class() == ErrorClass::Invalid => {
                return Err(TransactionError::Store(StoreError::Refused(error.to_string())));
            }
            None => return Err(TransactionError::Store(error.into())),
        }
    }
}

/// Returns the error of a cancelled transaction with the code and the message of its reason, which tell what it means. A reason
/// that no retry removes takes precedence over throttling and conflicts.
pub(super) fn with_reason(error: AwsError, reasons: &[CancellationReason]) -> AwsError {
    let given = reasons.iter().filter(|reason| reason.code().is_some_and(|code| code != "None"));
    let errors = given.map(|reason| {
        let code = reason.code().map(str::to_owned);
        let message = format!("transaction cancelled: {}: {}", reason.code()?, reason.message().unwrap_or_default());
        Some(AwsError { code, message, ..error.clone() })
    });
    let mut errors: Vec<AwsError> = errors.flatten().collect();
    errors.sort_by_key(AwsError::is_throttled);
    errors.into_iter().next().unwrap_or(error)
}
