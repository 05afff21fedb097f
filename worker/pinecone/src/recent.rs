//! What was written a moment ago, which lists may not show yet.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sparks_domain::PersonId;

use crate::name::Name;

/// Names of vectors that this process wrote lately, with their namespaces. Whoever forgets somebody drops these too: what a service
/// does not list yet would come to light later.
#[derive(Debug)]
pub(crate) struct Recent {
    lag: Duration,
    most: usize,
    written: Mutex<VecDeque<(Instant, String, Name)>>,
}

impl Recent {
    /// Keeps names for so long, and so many.
    pub fn new(lag: Duration, most: usize) -> Self {
        Self { lag, most, written: Mutex::default() }
    }

    /// These are written now.
    pub fn add(&self, namespace: &str, names: impl IntoIterator<Item = Name>) {
        let now = Instant::now();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend(names.into_iter().map(|name| (now, namespace.to_owned(), name)));
        let old = written.iter().take_while(|(at, ..)| now.duration_since(*at) > self.lag).count();
        let over = written.len().saturating_sub(self.most);
        written.drain(..old.max(over));
    }

    /// Those of this person in this namespace.
    pub fn of(&self, namespace: &str, person: PersonId) -> BTreeSet<String> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = written.iter().filter(|(_, there, name)| there == namespace && name.person == person);
        theirs.map(|(.., name)| name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(person: u32) -> Name {
        format!("person{person}#0ujtsYcgvSTl8PAuAdqWYSMnLOv#0").parse().expect("a name")
    }

    #[test]
    fn what_is_old_or_too_much_is_dropped() {
        let of = |recent: &Recent, person| recent.of("a", name(person).person).len();
        let recent = Recent::new(Duration::from_secs(60), 2);
        recent.add("a", [name(1), name(2), name(3)]);
        recent.add("b", []);
        assert_eq!([1, 2, 3].map(|person| of(&recent, person)), [0, 1, 1]);
        assert!(recent.of("b", name(2).person).is_empty());
        let short = Recent::new(Duration::ZERO, 9);
        short.add("a", [name(1)]);
        std::thread::sleep(Duration::from_millis(2));
        short.add("a", [name(2)]);
        assert_eq!([1, 2].map(|person| of(&short, person)), [0, 1]);
    }
}
