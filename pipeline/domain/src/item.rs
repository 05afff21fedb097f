//! Rows of the platform's table, and the ways we change them.

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
    /// The key with these parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// A photo's row.
    pub fn image(image: &ImageId, uploader: &Email) -> Self {
        Self::new(image.as_str(), format!("UPLOADED_BY#{uploader}"))
    }

    /// A person's row.
    pub fn person(person: PersonId) -> Self {
        Self::new(format!("PERSON#{person}"), person.to_string())
    }

    /// The row that ties a person to a photo.
    pub fn tagging(image: &ImageId, person: PersonId) -> Self {
        Self::new(image.as_str(), format!("PERSON#{person}"))
    }

    /// The counter of persons.
    pub fn counter() -> Self {
        Self::new("UNKNOWN_PERSONS", "UNKNOWN_PERSONS")
    }

    /// A user's row.
    pub fn user(email: &Email) -> Self {
        Self::new(email.as_str(), email.as_str())
    }

    /// The row of a user's upload limit.
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
    /// The attribute, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    /// The whole row as one JSON object, its key among its attributes.
    pub fn into_json(self) -> Value {
        let mut row = self.attributes;
        row.insert("PK".into(), self.key.pk.into());
        row.insert("SK".into(), self.key.sk.into());
        Value::Object(row)
    }
}

/// What must be true of a row for a change to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Whether it exists does not matter.
    Any,
    /// It exists: the platform made it.
    Required,
    /// It does not: we make it.
    Absent,
}

/// A change to one row. Deliberately absent: replacing a row whole, because we are guests in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Mutation {
    /// Give these attributes these values and leave all others alone.
    Set {
        /// The row.
        key: Key,
        /// What must be true of it.
        presence: Presence,
        /// Their new values.
        attributes: Attributes,
        /// Attributes that only ever grow: they get the larger of this and what is there.
        at_least: Attributes,
    },
    /// Remove the row.
    Delete {
        /// The row.
        key: Key,
    },
    /// Remove the row, which exists: whoever removes it may do what only one may.
    Take {
        /// The row.
        key: Key,
    },
    /// Remove these attributes, if the row exists.
    Clear {
        /// The row.
        key: Key,
        /// Their names.
        attributes: Vec<String>,
    },
    /// Add to a number of a row that exists.
    Add {
        /// The row.
        key: Key,
        /// The number's name.
        attribute: String,
        /// How much more.
        amount: i64,
    },
}

impl Mutation {
    /// Whether it applies only to a row that exists.
    pub fn requires_row(&self) -> bool {
        matches!(self, Self::Set { presence: Presence::Required, .. } | Self::Take { .. } | Self::Add { .. })
    }

    /// The same, where this is true of the row; only what sets attributes asks.
    pub(crate) fn with_presence(self, presence: Presence) -> Self {
        match self {
            Self::Set { key, attributes, at_least, .. } => Self::Set { key, presence, attributes, at_least },
            other => other,
        }
    }

    /// What of it the row does not say already; none where that is nothing. So that whoever wrote to the row since it was read
    /// is not overwritten.
    pub fn beyond(self, row: Option<&Attributes>) -> Option<Self> {
        match (self, row) {
            (Self::Set { key, presence, mut attributes, at_least }, Some(row)) => {
                attributes.retain(|name, value| row.get(name) != Some(value));
                let is_nothing = attributes.is_empty() && at_least.is_empty() && presence == Presence::Any;
                (!is_nothing).then_some(Self::Set { key, presence, attributes, at_least })
            }
            (change, _) => Some(change),
        }
    }

    /// The row it changes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Set { key, .. } | Self::Clear { key, .. } | Self::Add { key, .. } => key,
            Self::Delete { key } | Self::Take { key } => key,
        }
    }
}
