//! Changes to rows of the platform's table, in which we are guests: attributes are set, and rows are never written whole.

use aws_sdk_dynamodb::{error::BuildError, types::TransactWriteItem};
use sparks_domain::{Attributes, Identity, Key, Mutation, Presence};
use sparks_engine::StoreError;

use super::{
    expression::Expression,
    value::{key_fields, n, to_dynamo},
};

/// What is known of a row: nothing, that it is not there, or what it holds.
pub(crate) type Known<'a> = Option<Option<&'a Attributes>>;

/// The action that makes this change; none where nothing is left to do. What depends on the row is tried on the likeliest
/// guess first, under a condition, and once more when the answer has told what is there.
pub(crate) fn action(
    table: &str,
    mutation: &Mutation,
    known: Known<'_>,
    guard: Option<&Identity>,
) -> Result<Option<TransactWriteItem>, BuildError> {
    let Key { pk, sk } = mutation.key();
    let (key, mut change) = (key_fields(pk, sk), Expression::default());
    if let Some(identity) = guard {
        counter_is(&mut change, identity);
    }
    match mutation {
        Mutation::Delete { .. } => return change.delete(table, key).map(Some),
        Mutation::Take { .. } => {
            change.if_there();
            return change.delete(table, key).map(Some);
        }
        Mutation::Clear { attributes, .. } => {
            if matches!(known, Some(None)) || attributes.is_empty() {
                return Ok(None);
            }
            change.if_there();
            for name in attributes {
                change.remove(name);
            }
        }
        Mutation::Add { attribute, amount, .. } => {
            change.if_there();
            let is_number = known.flatten().is_none_or(|row| row.get(attribute).is_some_and(|found| found.is_number()));
            if is_number {
                change.if_number(attribute).add(attribute, n(amount));
            }
        }
        Mutation::Set { presence, attributes, at_least, .. } => {
            match presence {
                Presence::Required => change.if_there(),
                Presence::Absent => change.if_absent(),
                Presence::Any => &mut change,
            };
            raise(&mut change, mutation, at_least, known);
            for (name, value) in attributes {
                change.set(name, to_dynamo(value));
            }
            if !change.changes() && *presence != Presence::Required {
                // An update without a change makes no row.
                let is_there = matches!(known, Some(Some(_)));
                change.if_absent();
                return if is_there { Ok(None) } else { change.put(table, key).map(Some) };
            }
        }
    }
    change.on(table, key).map(Some)
}

/// Attributes that only ever grow. There is no such function: the guess is that what is there is smaller.
fn raise(change: &mut Expression, mutation: &Mutation, at_least: &Attributes, known: Known<'_>) {
    let Some(row) = known else {
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

/// The last number given out is still this one.
pub(crate) fn counter_is(change: &mut Expression, identity: &Identity) {
    match identity.counter {
        0 => change.if_equal_or_absent("limit", n(0)),
        counter => change.if_equal("limit", n(counter)),
    };
}

/// Two changes to one row as one: a transaction may name a row once.
pub(crate) fn merged(mutations: &[Mutation]) -> Result<Vec<Mutation>, StoreError> {
    let mut rows: Vec<Mutation> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        match rows.iter_mut().find(|row| row.key() == mutation.key()) {
            None => rows.push(mutation.clone()),
            Some(row) => *row = both(row, mutation)?,
        }
    }
    Ok(rows)
}

fn both(first: &Mutation, second: &Mutation) -> Result<Mutation, StoreError> {
    match (first, second) {
        (first, Mutation::Delete { key }) => Ok(match first.requires_row() {
            true => Mutation::Take { key: key.clone() },
            false => Mutation::Delete { key: key.clone() },
        }),
        (
            Mutation::Set { key, presence, attributes, at_least },
            Mutation::Set { presence: later, attributes: more, at_least: higher, .. },
        ) => {
            let presence = if *presence == Presence::Any { *later } else { *presence };
            let together = |a: &Attributes, b: &Attributes| a.clone().into_iter().chain(b.clone()).collect();
            let (attributes, at_least) = (together(attributes, more), together(at_least, higher));
            Ok(Mutation::Set { key: key.clone(), presence, attributes, at_least })
        }
        (Mutation::Add { key, attribute, amount }, Mutation::Add { attribute: other, amount: more, .. })
            if attribute == other =>
        {
            Ok(Mutation::Add { key: key.clone(), attribute: attribute.clone(), amount: amount + more })
        }
        (first, _) => Err(StoreError::Unreadable(format!("two changes of the row {} are not one", first.key()))),
    }
}
