//! Rows of the platform's table: keys, attributes and changes.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Email, ImageId, PersonId};

/// A row's attributes besides its key, by name.
pub type Attributes = Map<String, Value>;

/// A row's key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Partition key.
    #[serde(rename = "PK")]
    pub pk: String,
    /// Sort key.
    #[serde(rename = "SK")]
    pub sk: String,
}

impl Key {
    /// Returns the key with these parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// Returns the key of a photo's IMAGE row.
    pub fn image(image: &ImageId, uploader: &Email) -> Self {
        Self::new(image.as_str(), format!("UPLOADED_BY#{uploader}"))
    }

    /// Returns the key of a PERSON row.
    pub fn person(person: PersonId) -> Self {
        Self::new(format!("PERSON#{person}"), person.to_string())
    }

    /// Returns the key of the TAGGING row of a person in a photo.
    pub fn tagging(image: &ImageId, person: PersonId) -> Self {
        Self::new(image.as_str(), format!("PERSON#{person}"))
    }

    /// Returns the key of the counter of persons.
    pub fn counter() -> Self {
        Self::new("UNKNOWN_PERSONS", "UNKNOWN_PERSONS")
    }

    /// Returns the key of a USER row.
    pub fn user(email: &Email) -> Self {
        Self::new(email.as_str(), email.as_str())
    }

    /// Returns the key of the LIMIT row of a user.
    pub fn limit(email: &Email) -> Self {
        Self::new(format!("LIMIT#{email}"), email.as_str())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.pk, self.sk)
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its key.
    pub key: Key,
    /// Its other attributes.
    pub attributes: Attributes,
}

impl Item {
    /// Returns the attribute, if it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    /// Returns the row as one JSON object that includes its key.
    pub fn into_json(self) -> Value {
        let mut row = self.attributes;
        row.insert("PK".into(), self.key.pk.into());
        row.insert("SK".into(), self.key.sk.into());
        Value::Object(row)
    }
}

/// The condition on a row's existence under which a change applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// None.
    Any,
    /// The row exists: the platform created it.
    Required,
    /// The row does not exist yet.
    Absent,
}

/// A change to one row. There is deliberately no replacement of a whole row: other programs have attributes in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Mutation {
    /// Sets these attributes and leaves all others unchanged.
    Set {
        /// The row.
        key: Key,
        /// The condition on its existence.
        presence: Presence,
        /// Their new values.
        attributes: Attributes,
        /// Attributes that only grow: each gets the larger of this and its present value.
        at_least: Attributes,
    },
    /// Deletes the row, if it exists.
    Delete {
        /// The row.
        key: Key,
    },
    /// Deletes the row, which must exist: of concurrent commits only one succeeds.
    DeleteExisting {
        /// The row.
        key: Key,
    },
    /// Removes these attributes, if the row exists.
    RemoveAttributes {
        /// The row.
        key: Key,
        /// Their names.
        attributes: Vec<String>,
    },
    /// Adds to a number of a row, which must exist.
    Add {
        /// The row.
        key: Key,
        /// The attribute's name.
        attribute: String,
        /// The amount to add.
        amount: i64,
    },
}

impl Mutation {
    /// Changes nothing: a condition that the row exists.
    pub fn require_row(key: Key) -> Self {
        Self::Set { key, presence: Presence::Required, attributes: Attributes::new(), at_least: Attributes::new() }
    }

    /// Returns whether the change applies only to an existing row.
    pub fn requires_row(&self) -> bool {
        matches!(self, Self::Set { presence: Presence::Required, .. } | Self::DeleteExisting { .. } | Self::Add { .. })
    }

    /// Returns the same change with another condition; only [`Mutation::Set`] has one.
    pub(crate) fn with_presence(self, presence: Presence) -> Self {
        match self {
            Self::Set { key, attributes, at_least, .. } => Self::Set { key, presence, attributes, at_least },
            other => other,
        }
    }

    /// Returns the change without the attributes that the row has already; `None` if nothing remains. Concurrent writes
    /// to those attributes are then not overwritten.
    pub fn without_unchanged(self, row: Option<&Attributes>) -> Option<Self> {
        match (self, row) {
            (Self::Set { key, presence, mut attributes, at_least }, Some(row)) => {
                attributes.retain(|name, value| row.get(name) != Some(value));
                let is_empty = attributes.is_empty() && at_least.is_empty() && presence == Presence::Any;
                (!is_empty).then_some(Self::Set { key, presence, attributes, at_least })
            }
            (change, _) => Some(change),
        }
    }

    /// Returns the key of the row that it changes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Set { key, .. } | Self::RemoveAttributes { key, .. } | Self::Add { key, .. } => key,
            Self::Delete { key } | Self::DeleteExisting { key } => key,
        }
    }
}
