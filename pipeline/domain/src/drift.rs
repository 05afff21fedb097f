//! The difference between a row as it is and as the log says it should be.

use std::fmt;

use serde_json::Value;

use crate::{Attributes, Key, Mutation, Presence};

/// One row that is not as the log says.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The row is ours and is not there.
    Missing(Key),
    /// The row is there and should not be.
    Stale(Key),
    /// An attribute of ours has another value.
    Differs {
        /// The row.
        key: Key,
        /// The attribute.
        attribute: String,
        /// What the log says.
        expected: Value,
        /// What is there, if anything.
        found: Option<Value>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(key) => write!(f, "{key}: the row is missing"),
            Self::Stale(key) => write!(f, "{key}: the row should be gone"),
            Self::Differs { key, attribute, expected, found: Some(found) } => {
                write!(f, "{key}: {attribute} is {found}, the log says {expected}")
            }
            Self::Differs { key, attribute, expected, found: None } => {
                write!(f, "{key}: {attribute} is missing, the log says {expected}")
            }
        }
    }
}

/// How the row differs from what the mutation would make of it. A row that only the platform can make is not ours to miss.
pub fn drift(mutation: &Mutation, row: Option<&Attributes>) -> Vec<Difference> {
    match (mutation, row) {
        (Mutation::Delete { .. } | Mutation::Take { .. }, None) => Vec::new(),
        (Mutation::Set { presence: Presence::Required, .. }, None) => Vec::new(),
        // What was added once cannot be seen, and what was taken away may be the platform's by now.
        (Mutation::Add { .. } | Mutation::Clear { .. }, _) => Vec::new(),
        (Mutation::Delete { key } | Mutation::Take { key }, Some(_)) => vec![Difference::Stale(key.clone())],
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
    /// The row's attributes after the change; `None` if the row is gone.
    pub fn apply(&self, row: Option<Attributes>) -> Option<Attributes> {
        match self {
            Self::Delete { .. } | Self::Take { .. } => None,
            Self::Clear { attributes, .. } => row.map(|mut row| {
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

/// The number with so much added; none where there is no number.
fn sum(found: &Value, amount: i64) -> Option<Value> {
    let Value::Number(number) = found else { return None };
    match number.as_i64().and_then(|number| number.checked_add(amount)) {
        Some(sum) => Some(sum.into()),
        None => Some((number.as_f64()? + amount as f64).into()),
    }
}

/// Whether the row says the same, if in another spelling: 5.0 is 5.
fn same(found: Option<&Value>, expected: &Value) -> bool {
    match (found, expected) {
        (Some(Value::Number(a)), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (found, expected) => found == Some(expected),
    }
}

/// The larger of what is there and the floor: numbers by value, texts (times in ISO form) by spelling.
/// What cannot be compared gives way to the floor.
fn larger<'a>(found: Option<&'a Value>, floor: &'a Value) -> &'a Value {
    match (found, floor) {
        (Some(found @ Value::Number(a)), Value::Number(b)) if a.as_f64() > b.as_f64() => found,
        (Some(found @ Value::String(a)), Value::String(b)) if a > b => found,
        _ => floor,
    }
}
