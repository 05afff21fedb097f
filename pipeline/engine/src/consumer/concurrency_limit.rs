//! Back-pressure: how many messages are processed at once.

use std::time::Duration;

use tokio::time::Instant;

/// The number of messages that may be in flight: additive increase, multiplicative decrease (D.-M. Chiu, R. Jain, "Analysis of
/// the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989). Work on a photo that is throttled
/// at its commit is thrown away, so fewer photos are started while a dependency throttles.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    limit: f64,
    slots: usize,
    decreased: Option<Instant>,
}

/// Messages that were started together are throttled together, which is one reason to decrease.
const DECREASE_INTERVAL: Duration = Duration::from_secs(1);

impl ConcurrencyLimit {
    /// Creates a limit of all slots.
    pub fn new(slots: usize) -> Self {
        Self { limit: slots as f64, slots, decreased: None }
    }

    /// Returns the number of messages that may be in flight, at least one.
    pub fn get(&self) -> usize {
        (self.limit as usize).clamp(1, self.slots.max(1))
    }

    /// Allows one more message per round of messages that were not throttled.
    pub fn increase(&mut self) {
        self.limit = (self.limit + 1.0 / self.limit).min(self.slots as f64).max(1.0);
    }

    /// Halves the number after a message was throttled.
    pub fn decrease(&mut self) {
        if self.decreased.is_none_or(|decreased| decreased.elapsed() >= DECREASE_INTERVAL) {
            self.limit = (self.limit / 2.0).max(1.0);
            self.decreased = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn limit_halves_once_per_interval_and_grows_by_one_per_round() {
        let mut limit = ConcurrencyLimit::new(8);
        limit.decrease();
        limit.decrease();
        assert_eq!(limit.get(), 4, "throttled together");
        tokio::time::advance(DECREASE_INTERVAL).await;
        limit.decrease();
        assert_eq!(limit.get(), 2);
        (0..3).for_each(|_| limit.increase());
        assert_eq!(limit.get(), 3);
        (0..100).for_each(|_| limit.increase());
        assert_eq!(limit.get(), 8, "never more than the slots");
    }

    #[tokio::test(start_paused = true)]
    async fn one_message_is_always_allowed() {
        let mut limit = ConcurrencyLimit::new(1);
        for _ in 0..5 {
            limit.decrease();
            tokio::time::advance(DECREASE_INTERVAL).await;
        }
        assert_eq!(limit.get(), 1);
    }
}
