//! Sending transactions, for as long as they only meet others.

use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, TransactWriteItem},
};
use sparks_engine::StoreError;

use super::plan::Action;
use crate::trouble::{Trouble, pauses};

/// Why a transaction did nothing.
#[derive(Debug)]
pub(crate) enum Undone {
    /// Conditions do not hold: a reason for each action.
    Refused(Vec<CancellationReason>),
    /// The store did not answer, or not as it should.
    Failed(StoreError),
}

/// What a transaction is cancelled for when it only met another, or the table had too much to do.
const BUSY: [&str; 4] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"];

/// All of these, or nothing.
pub(crate) async fn transact(client: &aws_sdk_dynamodb::Client, actions: &[Action]) -> Result<(), Undone> {
    let mut pauses = pauses();
    loop {
        let writes: Vec<TransactWriteItem> = actions.iter().map(|action| action.write.clone()).collect();
        // The SDK names the request, so that its own repeats are one.
        let Err(error) = client.transact_write_items().set_transact_items(Some(writes)).send().await else {
            return Ok(());
        };
        let cancelled = match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(e)) => Some(e.cancellation_reasons().to_vec()),
            _ => None,
        };
        let trouble = Trouble::from(error);
        let is_busy = match &cancelled {
            Some(reasons) if has(reasons, &["ConditionalCheckFailed"]) => {
                return Err(Undone::Refused(reasons.clone()));
            }
            Some(reasons) => has(reasons, &BUSY),
            None => trouble.is_busy(),
        };
        if !is_busy {
            return Err(Undone::Failed(failure(cancelled.as_deref(), trouble)));
        }
        match pauses.next() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(Undone::Failed(trouble.into())),
        }
    }
}

fn has(reasons: &[CancellationReason], codes: &[&str]) -> bool {
    reasons.iter().any(|reason| reason.code().is_some_and(|code| codes.contains(&code)))
}

/// What is refused for what it is, and not for what else there is, no repeat mends.
fn failure(cancelled: Option<&[CancellationReason]>, trouble: Trouble) -> StoreError {
    let first = cancelled.and_then(|reasons| reasons.iter().find(|reason| reason.code() != Some("None")));
    match first {
        Some(reason) => StoreError::Unreadable(format!(
            "{}: {}",
            reason.code().unwrap_or("a cancelled transaction"),
            reason.message().unwrap_or("without a reason")
        )),
        None if trouble.is(&["ValidationException"]) => StoreError::Unreadable(trouble.words),
        None => trouble.into(),
    }
}
