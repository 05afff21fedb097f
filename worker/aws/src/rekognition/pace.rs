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
        let at = {
            let (mut lanes, now) = (self.lanes(), Instant::now());
            let lane = self.lane(&mut lanes, operation, now);
            if let Some(slowed) = lane.slowed {
                let back = self.most * BACK * now.duration_since(slowed).as_secs_f64();
                lane.rate = (lane.rate + back).min(self.most);
                lane.slowed = (lane.rate < self.most).then_some(now);
            }
            let at = lane.next.max(now);
            lane.next = at + Duration::from_secs_f64(1.0 / lane.rate);
            at
        };
        sleep_until(at).await;
    }

    /// The service has refused a call because there were too many.
    pub fn slow_down(&self, operation: &'static str) {
        let (mut lanes, now) = (self.lanes(), Instant::now());
        let lane = self.lane(&mut lanes, operation, now);
        if lane.slowed.is_none_or(|slowed| now.duration_since(slowed) >= ONCE_IN) {
            lane.rate = (lane.rate * SLOWER).max(SLOWEST);
            lane.slowed = Some(now);
        }
    }

    fn lane<'a>(
        &self,
        lanes: &'a mut BTreeMap<&'static str, Lane>,
        operation: &'static str,
        now: Instant,
    ) -> &'a mut Lane {
        lanes.entry(operation).or_insert(Lane { rate: self.most, next: now, slowed: None })
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<&'static str, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seconds_for(pace: &Pace, calls: u32) -> f64 {
        let started = Instant::now();
        for _ in 0..calls {
            pace.turn("Look").await;
        }
        started.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_no_more_than_the_account_takes() {
        let pace = Pace::new(10.0);
        assert!((seconds_for(&pace, 21).await - 2.0).abs() < 0.05);
        let started = Instant::now();
        pace.turn("Another").await;
        assert!(started.elapsed() < Duration::from_millis(10), "each operation has a quota of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_slow_it_down_and_time_brings_it_back() {
        let pace = Pace::new(10.0);
        seconds_for(&pace, 1).await;
        for _ in 0..5 {
            pace.slow_down("Look");
        }
        let slow = seconds_for(&pace, 7).await;
        assert!((0.7..1.3).contains(&slow), "six calls a second, as five refusals at once are one: {slow}");
        tokio::time::sleep(Duration::from_secs(20)).await;
        seconds_for(&pace, 1).await;
        assert!((seconds_for(&pace, 10).await - 1.0).abs() < 0.05);
    }
}
