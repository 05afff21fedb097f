//! Writes of mutations to the platform's table. Single attributes are set; a row is never replaced, because the platform
//! owns it.

use aws_sdk_dynamodb::{error::BuildError, types::TransactWriteItem};
use sparks_domain::{Attributes, IdentityHead, Key, Mutation, Presence};
use sparks_engine::StoreError;

use super::{
    attribute_value::{key_fields, n, to_dynamo},
    expression::Expression,
};

/// The assumed row: unknown, missing, or with these attributes.
pub(crate) type AssumedRow<'a> = Option<Option<&'a Attributes>>;

/// Returns the write of a mutation; none if there is nothing to write. A write that depends on an unknown row assumes the
/// likeliest content under a condition; a failed condition returns the row for the next attempt.
pub(crate) fn action(
    table: &str,
    mutation: &Mutation,
    assumed: AssumedRow<'_>,
    guard: Option<&IdentityHead>,
) -> Result<Option<TransactWriteItem>, BuildError> {
    let Key { pk, sk } = mutation.key();
    let (key, mut change) = (key_fields(pk, sk), Expression::default());
    if let Some(identity) = guard {
        counter_is(&mut change, identity);
    }
    match mutation {
        Mutation::Delete { .. } => return change.delete(table, key).map(Some),
        Mutation::DeleteExisting { .. } => {
            change.if_exists();
            return change.delete(table, key).map(Some);
        }
        Mutation::RemoveAttributes { attributes, .. } => {
            if matches!(assumed, Some(None)) || attributes.is_empty() {
                return Ok(None);
            }
            change.if_exists();
            for name in attributes {
                change.remove(name);
            }
        }
        Mutation::Add { attribute, amount, .. } => {
            change.if_exists();
            let is_number =
                assumed.flatten().is_none_or(|row| row.get(attribute).is_some_and(|found| found.is_number()));
            if is_number {
                change.if_number(attribute).add(attribute, n(amount));
            }
        }
        Mutation::Set { presence, attributes, at_least, .. } => {
            match presence {
                Presence::Required => change.if_exists(),
                Presence::Absent => change.if_absent(),
                Presence::Any => &mut change,
            };
            raise(&mut change, mutation, at_least, assumed);
            for (name, value) in attributes {
                change.set(name, to_dynamo(value));
            }
            if !change.has_changes() && *presence != Presence::Required {
                // An update without a change creates no row, so an absent row is put.
                let exists = matches!(assumed, Some(Some(_)));
                change.if_absent();
                return if exists { Ok(None) } else { change.put(table, key).map(Some) };
            }
        }
    }
    change.on(table, key).map(Some)
}

/// Raises attributes that must never decrease. DynamoDB has no maximum function, so an unknown value is assumed to be
/// smaller, under a condition.
fn raise(change: &mut Expression, mutation: &Mutation, at_least: &Attributes, assumed: AssumedRow<'_>) {
    let Some(row) = assumed else {
        for (name, floor) in at_least {
            change.if_at_most(name, to_dynamo(floor)).set(name, to_dynamo(floor));
        }
        return;
    };
    let raised = mutation.apply(row.cloned()).unwrap_or_default();
    for (name, value) in at_least.keys().filter_map(|name| raised.get_key_value(name)) {
        match row.and_then(|row| row.get(name)) {
            Some(found) if found == value => &mut *change,
            Some(found) => change.if_equal(name, to_dynamo(found)).set(name, to_dynamo(value)),
            None => change.unless_has(name).set(name, to_dynamo(value)),
        };
    }
}

/// Requires that the person counter is unchanged.
pub(crate) fn counter_is(change: &mut Expression, identity: &IdentityHead) {
    match identity.counter {
        0 => change.if_equal_or_absent("limit", n(0)),
        counter => change.if_equal("limit", n(counter)),
    };
}

/// Merges mutations of the same row: DynamoDB allows one action per item in a transaction.
pub(crate) fn merged(mutations: &[Mutation]) -> Result<Vec<Mutation>, StoreError> {
    let mut rows: Vec<Mutation> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        match rows.iter_mut().find(|row| row.key() == mutation.key()) {
            None => rows.push(mutation.clone()),
            Some(row) => *row = merge(row, mutation)?,
        }
    }
    Ok(rows)
}

fn merge(first: &Mutation, second: &Mutation) -> Result<Mutation, StoreError> {
    match (first, second) {
        (first, Mutation::Delete { key }) => Ok(match first.requires_row() {
            true => Mutation::DeleteExisting { key: key.clone() },
            false => Mutation::Delete { key: key.clone() },
        }),
        (
            Mutation::Set { key, presence, attributes, at_least },
            Mutation::Set { presence: later, attributes: more, at_least: higher, .. },
        ) => {
            let presence = if *presence == Presence::Any { *later } else { *presence };
            let union = |a: &Attributes, b: &Attributes| a.clone().into_iter().chain(b.clone()).collect();
            let (attributes, at_least) = (union(attributes, more), union(at_least, higher));
            Ok(Mutation::Set { key: key.clone(), presence, attributes, at_least })
        }
        (Mutation::Add { key, attribute, amount }, Mutation::Add { attribute: other, amount: more, .. })
            if attribute == other =>
        {
            Ok(Mutation::Add { key: key.clone(), attribute: attribute.clone(), amount: amount + more })
        }
        (first, _) => Err(StoreError::Unreadable(format!("two mutations of row {} cannot be merged", first.key()))),
    }
}
