//! The limits of DynamoDB for a transaction ("Quotas and constraints" in its developer guide).

use sparks_engine::{Erasure, StoreError};

use super::transaction_plan::Action;

/// The actions of a `TransactWriteItems` request.
pub(crate) const MAX_ACTIONS: usize = 100;
/// The bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 4 << 10;

/// Fails if DynamoDB would refuse the transaction, with an error that names the limit.
pub(crate) fn check(actions: &[Action]) -> Result<(), StoreError> {
    if actions.len() > MAX_ACTIONS {
        return Err(StoreError::Refused(format!(
            "the commit needs {} actions, and a transaction of DynamoDB has at most {MAX_ACTIONS}: erase faces of at most {} \
             photos at once",
            actions.len(),
            Erasure::MAX_PHOTOS
        )));
    }
    let longest = actions.iter().flat_map(expressions).map(str::len).max().unwrap_or_default();
    if longest > MAX_EXPRESSION_BYTES {
        return Err(StoreError::Refused(format!(
            "the commit needs an expression of {longest} bytes, and one of DynamoDB has at most {MAX_EXPRESSION_BYTES}: \
             change fewer faces of a photo at once"
        )));
    }
    Ok(())
}

/// Returns the expressions of an action.
fn expressions(action: &Action) -> impl Iterator<Item = &str> {
    let write = &action.write;
    let conditions = [
        write.condition_check().map(|check| check.condition_expression()),
        write.put().and_then(|put| put.condition_expression()),
        write.delete().and_then(|delete| delete.condition_expression()),
        write.update().and_then(|update| update.condition_expression()),
    ];
    conditions.into_iter().flatten().chain(write.update().map(|update| update.update_expression()))
}
