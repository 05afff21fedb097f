//! All PERSON rows of the table.

use std::collections::BTreeSet;

use serde_json::Value;
use sparks_domain::Key;
use sparks_engine::{Filter, Query, Store};

/// All PERSON rows of the table, including those of other runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonRows {
    /// The persons that have a PERSON row.
    pub persons: BTreeSet<String>,
    /// The highest person number that was allocated.
    pub counter: u64,
}

const PAGE_SIZE: usize = 1000;

impl PersonRows {
    /// Reads all PERSON rows and the counter.
    pub async fn read(store: &dyn Store) -> anyhow::Result<Self> {
        let counter = store.get(&Key::counter()).await?;
        let counter = counter.and_then(|row| row.attributes.get("limit").and_then(Value::as_u64)).unwrap_or_default();
        let (mut persons, mut after) = (BTreeSet::new(), None);
        loop {
            let filter = Filter::EntityType("PERSON".into());
            let page = store.query(&Query { filter, after, limit: PAGE_SIZE, backwards: false }).await?;
            persons.extend(page.items.into_iter().map(|row| row.key.sk));
            after = page.last;
            if after.is_none() {
                return Ok(Self { persons, counter });
            }
        }
    }
}
