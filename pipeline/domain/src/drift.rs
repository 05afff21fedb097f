//! Drift: the differences between the rows of the table and those that the log determines.

use std::fmt;

use serde_json::Value;

use crate::{Attributes, Key, Mutation, Presence};

/// One difference between a row and the log.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The row does not exist.
    Missing(Key),
    /// The row exists and should not.
    Stale(Key),
    /// An attribute has another value.
    Differs {
        /// The row.
        key: Key,
        /// The attribute.
        attribute: String,
        /// The value by the log.
        expected: Value,
        /// The value in the row, if any.
        found: Option<Value>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(key) => write!(f, "{key}: the row is missing"),
            Self::Stale(key) => write!(f, "{key}: the row should not exist"),
            Self::Differs { key, attribute, expected, found: Some(found) } => {
                write!(f, "{key}: {attribute} is {found}, expected {expected}")
            }
            Self::Differs { key, attribute, expected, found: None } => {
                write!(f, "{key}: {attribute} is missing, expected {expected}")
            }
        }
    }
}

/// Returns how the row differs from the result of the mutation. A missing row that only the platform creates is not a
/// difference.
pub fn drift(mutation: &Mutation, row: Option<&Attributes>) -> Vec<Difference> {
    match (mutation, row) {
        (Mutation::Delete { .. } | Mutation::DeleteExisting { .. }, None) => Vec::new(),
        (Mutation::Set { presence: Presence::Required, .. }, None) => Vec::new(),
        // A past addition cannot be verified, and a removed attribute may have been written by the platform since.
        (Mutation::Add { .. } | Mutation::RemoveAttributes { .. }, _) => Vec::new(),
        (Mutation::Delete { key } | Mutation::DeleteExisting { key }, Some(_)) => vec![Difference::Stale(key.clone())],
        (Mutation::Set { key, .. }, None) => vec![Difference::Missing(key.clone())],
        (Mutation::Set { key, attributes, at_least, .. }, Some(row)) => {
            let other = attributes.iter().filter(|(name, value)| !same(row.get(*name), value));
            let smaller = at_least.iter().filter(|(name, floor)| !same(row.get(*name), larger(row.get(*name), floor)));
            let differing = other.chain(smaller).map(|(name, expected)| Difference::Differs {
                key: key.clone(),
                attribute: name.clone(),
                expected: expected.clone(),
                found: row.get(name).cloned(),
            });
            differing.collect()
        }
    }
}

impl Mutation {
    /// Returns the row's attributes after the change; `None` if the row is deleted.
    pub fn apply(&self, row: Option<Attributes>) -> Option<Attributes> {
        match self {
            Self::Delete { .. } | Self::DeleteExisting { .. } => None,
            Self::RemoveAttributes { attributes, .. } => row.map(|mut row| {
                row.retain(|name, _| !attributes.contains(name));
                row
            }),
            Self::Add { attribute, amount, .. } => row.map(|mut row| {
                if let Some(number) = row.get(attribute).and_then(|found| sum(found, *amount)) {
                    row.insert(attribute.clone(), number);
                }
                row
            }),
            Self::Set { attributes, at_least, .. } => {
                let mut row = row.unwrap_or_default();
                for (name, floor) in at_least {
                    let value = larger(row.get(name), floor).clone();
                    row.insert(name.clone(), value);
                }
                row.extend(attributes.clone());
                Some(row)
            }
        }
    }
}

/// Returns the sum; `None` if the value is not a number.
fn sum(found: &Value, amount: i64) -> Option<Value> {
    let Value::Number(number) = found else { return None };
    match number.as_i64().and_then(|number| number.checked_add(amount)) {
        Some(sum) => Some(sum.into()),
        None => Some((number.as_f64()? + amount as f64).into()),
    }
}

/// Returns whether the values are equal; numbers are compared by value (5.0 is 5).
fn same(found: Option<&Value>, expected: &Value) -> bool {
    match (found, expected) {
        (Some(Value::Number(a)), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (found, expected) => found == Some(expected),
    }
}

/// Returns the larger of the present value and the floor: numbers by value, strings (ISO times) by spelling. A value
/// that cannot be compared is replaced by the floor.
fn larger<'a>(found: Option<&'a Value>, floor: &'a Value) -> &'a Value {
    match (found, floor) {
        (Some(found @ Value::Number(a)), Value::Number(b)) if a.as_f64() > b.as_f64() => found,
        (Some(found @ Value::String(a)), Value::String(b)) if a > b => found,
        _ => floor,
    }
}
