//! Tables that somebody has filled before us.

use std::fmt;

use sparks_domain::{Position, Seq};

use crate::{Store, StoreError};

/// Persons have numbers, and no event says who they are: whoever comes next would be somebody new, known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unadopted {
    /// The last number given out.
    pub counter: u32,
}

impl Unadopted {
    /// What helps.
    pub const REMEDY: &str = "`sparks adopt` takes over the persons that are there";

    /// Whether the table's counter has given out numbers that the log does not know of, because there is no event at all.
    pub async fn find(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        if !store.read_log(&Position::default(), 1).await?.is_empty() {
            return Ok(None);
        }
        // Read together: somebody may just have founded the first person.
        let persons = store.identity(Seq::default()).await?;
        let unknown = persons.counter > 0 && persons.events.is_empty();
        Ok(unknown.then_some(Self { counter: persons.counter }))
    }
}

impl fmt::Display for Unadopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the counter UNKNOWN_PERSONS is at {}, and the log is empty", self.counter)
    }
}
