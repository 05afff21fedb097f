//! Detection of a table that a previous worker has filled and that is not adopted yet.

use std::fmt;

use sparks_domain::{Position, Seq};

use crate::{Store, StoreError};

/// A table with numbered persons and an empty event log. A worker would allocate a new person for every face, known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnadoptedTable {
    /// The last number allocated.
    pub counter: u32,
}

impl UnadoptedTable {
    /// The remedy.
    pub const REMEDY: &str = "adopt the existing persons with `sparks adopt`";

    /// Returns the counter of the table, if it has allocated numbers and the event log is empty.
    pub async fn find(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        if !store.read_log(&Position::default(), 1).await?.is_empty() {
            return Ok(None);
        }
        // Counter and events in one read: a worker may just have allocated the first person.
        let persons = store.identity(Seq::default()).await?;
        let is_unadopted = persons.counter > 0 && persons.events.is_empty();
        Ok(is_unadopted.then_some(Self { counter: persons.counter }))
    }
}

impl fmt::Display for UnadoptedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the counter UNKNOWN_PERSONS is at {}, and the event log is empty", self.counter)
    }
}
