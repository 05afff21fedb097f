//! Limits the rate of calls to Rekognition.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Spaces calls evenly, each operation by itself: Rekognition's quotas are per operation and account. Throttled calls
/// reduce the rate (other processes may use the same quota), and it recovers over time: additive increase, multiplicative
/// decrease (AIMD).
pub(crate) struct RateLimiter {
    max_rate: f64,
    rates: Mutex<BTreeMap<&'static str, OperationRate>>,
}

/// The current rate of one operation.
struct OperationRate {
    /// Calls per second.
    rate: f64,
    /// The time of the next call.
    next: Instant,
    /// The last time that throttling reduced the rate.
    reduced: Option<Instant>,
    /// The last time that the rate recovered.
    recovered: Instant,
}

/// The factor that a throttled call reduces the rate by.
const DECREASE: f64 = 0.6;
/// Throttled calls within this time count as one.
const DECREASE_INTERVAL: Duration = Duration::from_millis(500);
/// The share of the maximum rate that is regained each second.
const INCREASE_PER_SECOND: f64 = 0.1;
const MIN_RATE: f64 = 0.2;

impl RateLimiter {
    /// Creates a limiter to this many calls per second of each operation.
    pub fn new(max_rate: f64) -> Self {
        Self { max_rate: max_rate.max(MIN_RATE), rates: Mutex::default() }
    }

    /// Waits until the operation may be called.
    pub async fn acquire(&self, operation: &'static str) {
        sleep_until(self.reserve(operation, Instant::now())).await;
    }

    /// Reduces the rate after a throttled call.
    pub fn report_throttled(&self, operation: &'static str) {
        self.report_throttled_at(operation, Instant::now());
    }

    /// Reserves the next call and returns its time.
    fn reserve(&self, operation: &'static str, now: Instant) -> Instant {
        let mut rates = self.lock();
        let operation = self.rate_of(&mut rates, operation, now);
        let increase = self.max_rate * INCREASE_PER_SECOND * now.duration_since(operation.recovered).as_secs_f64();
        operation.rate = (operation.rate + increase).min(self.max_rate);
        operation.recovered = now;
        let at = operation.next.max(now);
        operation.next = at + Duration::from_secs_f64(1.0 / operation.rate);
        at
    }

    fn report_throttled_at(&self, operation: &'static str, now: Instant) {
        let mut rates = self.lock();
        let operation = self.rate_of(&mut rates, operation, now);
        if operation.reduced.is_none_or(|reduced| now.duration_since(reduced) >= DECREASE_INTERVAL) {
            operation.rate = (operation.rate * DECREASE).max(MIN_RATE);
            (operation.reduced, operation.recovered) = (Some(now), now);
        }
    }

    fn rate_of<'a>(
        &self,
        rates: &'a mut BTreeMap<&'static str, OperationRate>,
        operation: &'static str,
        now: Instant,
    ) -> &'a mut OperationRate {
        rates.entry(operation).or_insert(OperationRate {
            rate: self.max_rate,
            next: now,
            reduced: None,
            recovered: now,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, OperationRate>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time after this many calls, one after the other.
    fn after(limiter: &RateLimiter, calls: u32, now: Instant) -> Instant {
        (0..calls).fold(now, |now, _| limiter.reserve("DetectFaces", now))
    }

    fn seconds_for(limiter: &RateLimiter, calls: u32, now: Instant) -> f64 {
        after(limiter, calls, now).duration_since(now).as_secs_f64()
    }

    #[test]
    fn calls_do_not_exceed_the_maximum_rate() {
        let (limiter, now) = (RateLimiter::new(10.0), Instant::now());
        assert!((seconds_for(&limiter, 21, now) - 2.0).abs() < 0.01);
        assert_eq!(limiter.reserve("CompareFaces", now), now, "each operation has a quota of its own");
    }

    #[test]
    fn throttling_reduces_the_rate_and_time_restores_it() {
        let limiter = RateLimiter::new(10.0);
        let now = after(&limiter, 2, Instant::now());
        for _ in 0..5 {
            limiter.report_throttled_at("DetectFaces", now);
        }
        let slow = seconds_for(&limiter, 7, now);
        assert!((0.7..1.3).contains(&slow), "six calls a second, as five throttled calls at once count as one: {slow}");
        let later = after(&limiter, 1, now + Duration::from_secs(20));
        assert!((seconds_for(&limiter, 11, later) - 1.0).abs() < 0.15);
    }

    #[test]
    fn repeated_throttling_reduces_the_rate_further() {
        let (limiter, mut now) = (RateLimiter::new(100.0), Instant::now());
        for _ in 0..300 {
            now = after(&limiter, 1, now);
            limiter.report_throttled_at("DetectFaces", now);
        }
        let slow = seconds_for(&limiter, 11, now);
        assert!(slow > 0.3, "a third of the maximum under constant throttling: ten calls took {slow} s");
    }
}
