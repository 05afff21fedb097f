//! How fast a service may be called.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Spaces calls out, each operation by itself, as the account's quotas are. Refusals slow it down, for others may use the same
/// account; time brings the speed back.
pub(crate) struct Pace {
    most: f64,
    lanes: Mutex<BTreeMap<&'static str, Lane>>,
}

struct Lane {
    rate: f64,
    next: Instant,
    slowed: Option<Instant>,
    recovered: Instant,
}

/// A refusal makes calls so much rarer, once in this time; each second without makes up for this share of the most.
const SLOWER: f64 = 0.6;
const ONCE_IN: Duration = Duration::from_millis(500);
const BACK: f64 = 0.1;
const SLOWEST: f64 = 0.2;

impl Pace {
    /// At most so many calls a second of each operation.
    pub fn new(most: f64) -> Self {
        Self { most: most.max(SLOWEST), lanes: Mutex::default() }
    }

    /// Waits for a turn.
    pub async fn turn(&self, operation: &'static str) {
        sleep_until(self.book(operation, Instant::now())).await;
    }

    /// The service has refused a call because there were too many.
    pub fn slow_down(&self, operation: &'static str) {
        self.slow_down_at(operation, Instant::now());
    }

    /// The next turn, for whoever asks now.
    fn book(&self, operation: &'static str, now: Instant) -> Instant {
        let mut lanes = self.lanes();
        let lane = self.lane(&mut lanes, operation, now);
        let back = self.most * BACK * now.duration_since(lane.recovered).as_secs_f64();
        lane.rate = (lane.rate + back).min(self.most);
        lane.recovered = now;
        let at = lane.next.max(now);
        lane.next = at + Duration::from_secs_f64(1.0 / lane.rate);
        at
    }

    fn slow_down_at(&self, operation: &'static str, now: Instant) {
        let mut lanes = self.lanes();
        let lane = self.lane(&mut lanes, operation, now);
        if lane.slowed.is_none_or(|slowed| now.duration_since(slowed) >= ONCE_IN) {
            lane.rate = (lane.rate * SLOWER).max(SLOWEST);
            (lane.slowed, lane.recovered) = (Some(now), now);
        }
    }

    fn lane<'a>(
        &self,
        lanes: &'a mut BTreeMap<&'static str, Lane>,
        operation: &'static str,
        now: Instant,
    ) -> &'a mut Lane {
        lanes.entry(operation).or_insert(Lane { rate: self.most, next: now, slowed: None, recovered: now })
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<&'static str, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time after so many turns, one after the other.
    fn after(pace: &Pace, turns: u32, now: Instant) -> Instant {
        (0..turns).fold(now, |now, _| pace.book("Look", now))
    }

    fn seconds_for(pace: &Pace, turns: u32, now: Instant) -> f64 {
        after(pace, turns, now).duration_since(now).as_secs_f64()
    }

    #[test]
    fn calls_are_no_more_than_the_account_takes() {
        let (pace, now) = (Pace::new(10.0), Instant::now());
        assert!((seconds_for(&pace, 21, now) - 2.0).abs() < 0.01);
        assert_eq!(pace.book("Another", now), now, "each operation has a quota of its own");
    }

    #[test]
    fn refusals_slow_it_down_and_time_brings_it_back() {
        let pace = Pace::new(10.0);
        let now = after(&pace, 2, Instant::now());
        for _ in 0..5 {
            pace.slow_down_at("Look", now);
        }
        let slow = seconds_for(&pace, 7, now);
        assert!((0.7..1.3).contains(&slow), "six calls a second, as five refusals at once are one: {slow}");
        let later = after(&pace, 1, now + Duration::from_secs(20));
        assert!((seconds_for(&pace, 11, later) - 1.0).abs() < 0.15);
    }

    #[test]
    fn refusals_between_calls_slow_it_down_further() {
        let (pace, mut now) = (Pace::new(100.0), Instant::now());
        for _ in 0..300 {
            now = after(&pace, 1, now);
            pace.slow_down_at("Look", now);
        }
        let slow = seconds_for(&pace, 11, now);
        assert!(slow > 0.3, "a third of the most, as it is refused all the time: ten calls took {slow} s");
    }
}
