//! Vectors that were written a moment ago and may not be listed yet.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sparks_domain::PersonId;

use crate::vector_id::VectorId;

/// The IDs of vectors that this process wrote last, with their namespaces. Removing a person deletes these too: a vector that
/// Pinecone does not list yet (eventual consistency) would appear later.
#[derive(Debug)]
pub(crate) struct RecentWrites {
    period: Duration,
    capacity: usize,
    written: Mutex<VecDeque<(Instant, String, VectorId)>>,
}

impl RecentWrites {
    /// Keeps IDs for this period, and at most this many.
    pub fn new(period: Duration, capacity: usize) -> Self {
        Self { period, capacity, written: Mutex::default() }
    }

    /// Adds IDs that are written now.
    pub fn add(&self, namespace: &str, ids: impl IntoIterator<Item = VectorId>) {
        let now = Instant::now();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend(ids.into_iter().map(|id| (now, namespace.to_owned(), id)));
        let expired = written.iter().take_while(|(at, ..)| now.duration_since(*at) > self.period).count();
        let excess = written.len().saturating_sub(self.capacity);
        written.drain(..expired.max(excess));
    }

    /// Returns the IDs of this person in this namespace.
    pub fn of(&self, namespace: &str, person: PersonId) -> BTreeSet<String> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let matching = written.iter().filter(|(_, within, id)| within == namespace && id.person == person);
        matching.map(|(.., id)| id.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(person: u32) -> VectorId {
        format!("person{person}#0ujtsYcgvSTl8PAuAdqWYSMnLOv#0").parse().expect("vector ID")
    }

    #[test]
    fn expired_and_excess_ids_are_dropped() {
        let of = |recent: &RecentWrites, person| recent.of("a", id(person).person).len();
        let recent = RecentWrites::new(Duration::from_secs(60), 2);
        recent.add("a", [id(1), id(2), id(3)]);
        recent.add("b", []);
        assert_eq!([1, 2, 3].map(|person| of(&recent, person)), [0, 1, 1]);
        assert!(recent.of("b", id(2).person).is_empty());
        let short = RecentWrites::new(Duration::ZERO, 9);
        short.add("a", [id(1)]);
        std::thread::sleep(Duration::from_millis(2));
        short.add("a", [id(2)]);
        assert_eq!([1, 2].map(|person| of(&short, person)), [0, 1]);
    }
}
