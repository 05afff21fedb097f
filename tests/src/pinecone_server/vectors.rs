//! The vectors of an index and their eventual consistency.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

/// A vector and its metadata.
#[derive(Clone)]
pub(super) struct Record {
    pub values: Vec<f32>,
    pub metadata: Map<String, Value>,
}

/// A write operation.
pub(super) enum Write {
    Upsert(String, Record),
    Update(String, Option<Vec<f32>>, Map<String, Value>),
    Delete(Vec<String>),
    DeleteAll,
}

/// The vectors by namespace. Writes become visible after a delay, in the order of writing.
pub(super) struct Vectors {
    pub dimension: usize,
    pub metric: &'static str,
    lag: Duration,
    visible: BTreeMap<String, BTreeMap<String, Record>>,
    namespaces: BTreeSet<String>,
    pending: VecDeque<(Instant, String, Write)>,
}

impl Vectors {
    pub fn new(dimension: usize, metric: &'static str) -> Self {
        let (visible, namespaces, pending) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        Self { dimension, metric, lag: Duration::ZERO, visible, namespaces, pending }
    }

    pub fn set_lag(&mut self, lag: Duration) {
        self.lag = lag;
    }

    /// Makes all writes visible.
    pub fn flush(&mut self) {
        self.apply_due(|_| true);
    }

    /// Queues a write that becomes visible later.
    pub fn write(&mut self, namespace: &str, write: Write) {
        if matches!(write, Write::Upsert(..)) {
            self.namespaces.insert(namespace.to_owned());
        }
        self.pending.push_back((Instant::now() + self.lag, namespace.to_owned(), write));
    }

    /// Returns whether anything was ever upserted into a namespace, visible or not.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Returns the visible vectors of a namespace.
    pub fn visible(&mut self, namespace: &str) -> Option<&BTreeMap<String, Record>> {
        let now = Instant::now();
        self.apply_due(|at| at <= now);
        self.visible.get(namespace)
    }

    /// Returns the number of visible vectors by namespace.
    pub fn counts(&mut self) -> Vec<(String, usize)> {
        let now = Instant::now();
        self.apply_due(|at| at <= now);
        self.visible.iter().map(|(name, records)| (name.clone(), records.len())).collect()
    }

    /// Returns the score of two vectors by the index's metric.
    pub fn score(&self, a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let score = match self.metric {
            "dotproduct" => dot(a, b),
            "euclidean" => dot(a, a) + dot(b, b) - 2.0 * dot(a, b),
            _ => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        };
        score as f32
    }

    fn apply_due(&mut self, is_due: impl Fn(Instant) -> bool) {
        while self.pending.front().is_some_and(|(at, ..)| is_due(*at)) {
            if let Some((_, namespace, write)) = self.pending.pop_front() {
                apply(self.visible.entry(namespace.clone()).or_default(), write);
            }
        }
        self.visible.retain(|_, records| !records.is_empty());
    }
}

fn apply(records: &mut BTreeMap<String, Record>, write: Write) {
    match write {
        Write::Upsert(id, record) => {
            records.insert(id, record);
        }
        Write::Update(id, values, metadata) => {
            if let Some(record) = records.get_mut(&id) {
                record.values = values.unwrap_or_else(|| std::mem::take(&mut record.values));
                record.metadata.extend(metadata);
            }
        }
        Write::Delete(ids) => {
            for id in ids {
                records.remove(&id);
            }
        }
        Write::DeleteAll => records.clear(),
    }
}
