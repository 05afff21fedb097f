//! What an index holds, and what of it shows.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

/// A vector and what is kept beside it.
#[derive(Clone)]
pub(super) struct Record {
    pub values: Vec<f32>,
    pub metadata: Map<String, Value>,
}

/// Something that is written.
pub(super) enum Write {
    Upsert(String, Record),
    Update(String, Option<Vec<f32>>, Map<String, Value>),
    Delete(Vec<String>),
    DeleteAll,
}

/// Namespaces with vectors. What is written shows after a while, in the order in which it was written.
pub(super) struct Vectors {
    pub dimension: usize,
    pub metric: &'static str,
    lag: Duration,
    shown: BTreeMap<String, BTreeMap<String, Record>>,
    known: BTreeSet<String>,
    pending: VecDeque<(Instant, String, Write)>,
}

impl Vectors {
    pub fn new(dimension: usize, metric: &'static str) -> Self {
        let (shown, known, pending) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        Self { dimension, metric, lag: Duration::ZERO, shown, known, pending }
    }

    pub fn set_lag(&mut self, lag: Duration) {
        self.lag = lag;
    }

    /// Shows everything.
    pub fn settle(&mut self) {
        self.show(|_| true);
    }

    /// Writes; it shows later.
    pub fn write(&mut self, namespace: &str, write: Write) {
        if matches!(write, Write::Upsert(..)) {
            self.known.insert(namespace.to_owned());
        }
        self.pending.push_back((Instant::now() + self.lag, namespace.to_owned(), write));
    }

    /// Whether anything was ever put there, whether it shows or not.
    pub fn knows(&self, namespace: &str) -> bool {
        self.known.contains(namespace)
    }

    /// What shows now.
    pub fn shown(&mut self, namespace: &str) -> Option<&BTreeMap<String, Record>> {
        let now = Instant::now();
        self.show(|at| at <= now);
        self.shown.get(namespace)
    }

    /// How many vectors show now, by namespace.
    pub fn counts(&mut self) -> Vec<(String, usize)> {
        let now = Instant::now();
        self.show(|at| at <= now);
        self.shown.iter().map(|(name, records)| (name.clone(), records.len())).collect()
    }

    /// How near the two are, by this index.
    pub fn score(&self, a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let score = match self.metric {
            "dotproduct" => dot(a, b),
            "euclidean" => dot(a, a) + dot(b, b) - 2.0 * dot(a, b),
            _ => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        };
        score as f32
    }

    fn show(&mut self, is_due: impl Fn(Instant) -> bool) {
        while self.pending.front().is_some_and(|(at, ..)| is_due(*at)) {
            if let Some((_, namespace, write)) = self.pending.pop_front() {
                apply(self.shown.entry(namespace.clone()).or_default(), write);
            }
        }
        self.shown.retain(|_, records| !records.is_empty());
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
