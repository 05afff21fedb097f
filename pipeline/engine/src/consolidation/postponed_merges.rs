//! Merges that have failed and are tried again later.

use std::{collections::BTreeMap, time::Duration};

use sparks_domain::{PersonId, Timestamp};

/// Two persons: the one that remains, and the one that is merged into it.
pub(super) type PersonPair = (PersonId, PersonId);

/// Merges that have failed, and when each is tried again (exponential backoff).
#[derive(Debug, Default)]
pub(super) struct PostponedMerges(BTreeMap<PersonPair, Postponement>);

#[derive(Debug)]
struct Postponement {
    failures: u32,
    until: Timestamp,
}

const FIRST_DELAY: Duration = Duration::from_secs(30);
const MAX_DELAY: Duration = Duration::from_secs(3600);

impl PostponedMerges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the merges to try again now.
    pub fn due(&self, now: Timestamp) -> Vec<PersonPair> {
        self.0.keys().copied().filter(|pair| self.is_due(*pair, now)).collect()
    }

    /// Whether a merge may be tried now.
    pub fn is_due(&self, pair: PersonPair, now: Timestamp) -> bool {
        self.0.get(&pair).is_none_or(|postponement| postponement.until <= now)
    }

    /// Postpones a merge that has failed; each time for twice as long.
    pub fn postpone(&mut self, pair: PersonPair, now: Timestamp) {
        let postponement = self.0.entry(pair).or_insert(Postponement { failures: 0, until: now });
        let delay = FIRST_DELAY.saturating_mul(1 << postponement.failures.min(16)).min(MAX_DELAY);
        postponement.failures += 1;
        let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        postponement.until = Timestamp::from_millis(now.as_millis().saturating_add(delay));
    }

    /// Removes a merge that has succeeded, or that is not proposed any more.
    pub fn remove(&mut self, pair: PersonPair) {
        self.0.remove(&pair);
    }
}
