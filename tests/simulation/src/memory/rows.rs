//! Rows of the platform's table, and indexes that lag behind them.

use std::{collections::BTreeMap, time::Duration};

use sparks_domain::{Attributes, Item, Key};
use sparks_engine::{Filter, Page, Query};
use tokio::time::Instant;

/// The rows as they are, and as the indexes have them.
#[derive(Default)]
pub(super) struct Rows {
    table: BTreeMap<Key, Attributes>,
    /// The rows as of the last query of an index, without the changes that are not due.
    indexed: BTreeMap<Key, Attributes>,
    /// Changed rows, and when the indexes show the change.
    due: Vec<(Instant, Key)>,
    index_lag: Duration,
}

impl Rows {
    pub fn new(index_lag: Duration) -> Self {
        Self { index_lag, ..Self::default() }
    }

    pub fn get(&self, key: &Key) -> Option<&Attributes> {
        self.table.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Attributes)> {
        self.table.iter()
    }

    /// Returns the rows after this key.
    pub fn after(&self, key: Option<&Key>) -> impl Iterator<Item = (&Key, &Attributes)> {
        let key = key.cloned();
        self.table.iter().filter(move |(row, _)| key.as_ref().is_none_or(|key| *row > key))
    }

    /// Replaces or removes a row.
    pub fn set(&mut self, key: &Key, row: Option<Attributes>) {
        match row {
            Some(row) => drop(self.table.insert(key.clone(), row)),
            None => drop(self.table.remove(key)),
        }
        let lag = if self.index_lag.is_zero() { self.index_lag } else { self.index_lag.mul_f64(fastrand::f64()) };
        self.due.push((Instant::now() + lag, key.clone()));
    }

    pub fn query(&mut self, query: &Query) -> Page {
        let (attribute, value) = match &query.filter {
            Filter::Partition { pk, sk_prefix } => {
                let is_match = |key: &Key, _: &Attributes| key.pk == *pk && key.sk.starts_with(sk_prefix);
                return page(&self.table, query, is_match);
            }
            Filter::EntityType(value) => ("entityType", value),
            Filter::UploadedBy(value) => ("uploadedBy", value),
        };
        self.update_indexes();
        page(&self.indexed, query, |_, row| row.get(attribute).and_then(|found| found.as_str()) == Some(value))
    }

    fn update_indexes(&mut self) {
        let now = Instant::now();
        for (_, key) in self.due.extract_if(.., |(due, _)| *due <= now) {
            match self.table.get(&key) {
                Some(row) => drop(self.indexed.insert(key, row.clone())),
                None => drop(self.indexed.remove(&key)),
            }
        }
    }
}

fn page(rows: &BTreeMap<Key, Attributes>, query: &Query, is_match: impl Fn(&Key, &Attributes) -> bool) -> Page {
    let is_after = |key: &Key| match &query.after {
        None => true,
        Some(after) if query.backwards => key < after,
        Some(after) => key > after,
    };
    let matching = |(key, row): (&Key, &Attributes)| {
        let item = || Item { key: key.clone(), attributes: row.clone() };
        (is_after(key) && is_match(key, row)).then(item)
    };
    let most = query.limit.saturating_add(1);
    let mut items: Vec<Item> = match query.backwards {
        true => rows.iter().rev().filter_map(matching).take(most).collect(),
        false => rows.iter().filter_map(matching).take(most).collect(),
    };
    let has_more = items.len() > query.limit;
    items.truncate(query.limit);
    let last = items.last().filter(|_| has_more).map(|item| item.key.clone());
    Page { items, last }
}
