//! Contention between workers that allocate persons at the same moment.
//!
//! An allocation is committed under the condition that no other one was committed since the identity lane was read, so of several
//! attempts at once one succeeds. As on a shared medium (slotted ALOHA), the attempts of all workers must be spread over a time that
//! is proportional to their number, which no worker knows: the time grows with each conflict and shrinks with each success.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The time over which this worker spreads its attempts to allocate persons. All photos of a worker share it, so that each profits
/// from the conflicts of those before.
#[derive(Default)]
pub(crate) struct AllocationContention(Mutex<Option<Spread>>);

#[derive(Clone, Copy)]
struct Spread {
    window: Duration,
    since: Instant,
}

impl AllocationContention {
    /// The window after the first conflict: some times the duration of an attempt.
    const MIN_WINDOW: Duration = Duration::from_millis(64);
    /// A window that is not worth waiting for.
    const NEGLIGIBLE: Duration = Duration::from_millis(4);
    /// Enough for hundreds of workers.
    const MAX_WINDOW: Duration = Duration::from_secs(8);
    /// With these factors about one attempt in five conflicts, whatever the number of workers.
    const GROWTH: f64 = 4.0;
    const DECLINE: f64 = 0.7;
    /// The time in which the window halves where nothing is allocated.
    const HALF_LIFE: Duration = Duration::from_secs(10);

    /// Returns how long to wait before the next attempt, at random; `None` where no other worker allocates persons.
    pub fn delay(&self) -> Option<Duration> {
        let window = self.window();
        (!window.is_zero()).then(|| window.mul_f64(fastrand::f64()))
    }

    /// Records an attempt that conflicted.
    pub fn record_conflict(&self) {
        let window = self.window().mul_f64(Self::GROWTH).clamp(Self::MIN_WINDOW, Self::MAX_WINDOW);
        self.set(window);
    }

    /// Records an attempt that succeeded.
    pub fn record_success(&self) {
        self.set(self.window().mul_f64(Self::DECLINE));
    }

    fn window(&self) -> Duration {
        let Some(Spread { window, since }) = *self.lock() else { return Duration::ZERO };
        let halvings = since.elapsed().as_secs_f64() / Self::HALF_LIFE.as_secs_f64();
        let window = window.mul_f64(0.5_f64.powf(halvings));
        if window < Self::NEGLIGIBLE { Duration::ZERO } else { window }
    }

    fn set(&self, window: Duration) {
        *self.lock() = (!window.is_zero()).then(|| Spread { window, since: Instant::now() });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Spread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_spread_after_conflicts_until_they_succeed() {
        let contention = AllocationContention::default();
        assert_eq!(contention.delay(), None, "without a conflict nothing waits");
        for _ in 0..9 {
            contention.record_conflict();
            tokio::time::advance(Duration::from_millis(20)).await;
        }
        assert!(contention.window() > AllocationContention::MAX_WINDOW / 2, "{:?}", contention.window());
        (0..9).for_each(|_| contention.record_success());
        assert!(contention.window() < Duration::from_millis(400), "{:?}", contention.window());
        (0..15).for_each(|_| contention.record_success());
        assert_eq!(contention.delay(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_past_contention_is_forgotten() {
        let contention = AllocationContention::default();
        (0..9).for_each(|_| contention.record_conflict());
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!(contention.delay(), None);
    }
}
