//! Who is in the table.

use std::collections::BTreeSet;

use serde_json::Value;
use sparks_domain::Key;
use sparks_engine::{Filter, Query, Store};

/// Everybody in the table, whoever put them there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Those who have a PERSON row.
    pub persons: BTreeSet<String>,
    /// The last number that was given out, as the table has it.
    pub counter: u64,
}

const PAGE: usize = 1000;

impl Census {
    /// Counts everybody.
    pub async fn take(store: &dyn Store) -> anyhow::Result<Self> {
        let counter = store.get(&Key::counter()).await?;
        let counter = counter.and_then(|row| row.attributes.get("limit").and_then(Value::as_u64)).unwrap_or_default();
        let (mut persons, mut after) = (BTreeSet::new(), None);
        loop {
            let filter = Filter::EntityType("PERSON".into());
            let page = store.query(&Query { filter, after, limit: PAGE, backwards: false }).await?;
            persons.extend(page.items.into_iter().map(|row| row.key.sk));
            after = page.last;
            if after.is_none() {
                return Ok(Self { persons, counter });
            }
        }
    }
}
