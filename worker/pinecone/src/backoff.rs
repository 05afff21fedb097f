//! Exponential backoff with full jitter, and the `Retry-After` header.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest `Retry-After` that is waited for here. Longer waits are left to the queue, which delivers the message again.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The time after which there are no more retries.
const MAX_ELAPSED: Duration = Duration::from_secs(15);

/// A few pauses of exponential backoff with full jitter.
pub(crate) struct Backoff {
    bounds: ExponentialBackoff,
    started: Instant,
}

impl Backoff {
    /// Starts now.
    pub fn new() -> Self {
        let bounds = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(2))
            .with_factor(2.0)
            .with_max_times(4);
        Self { bounds: bounds.build(), started: Instant::now() }
    }

    /// Returns the next pause, not shorter than the service requests; none if there are no more retries.
    pub fn next(&mut self, requested: Option<Duration>) -> Option<Duration> {
        let requested = requested.unwrap_or_default();
        if requested > MAX_RETRY_AFTER || self.started.elapsed() >= MAX_ELAPSED {
            return None;
        }
        self.bounds.next().map(|bound| requested + bound.mul_f64(fastrand::f64()))
    }
}

/// Returns the `Retry-After` of a response in seconds. Dates are ignored: clocks differ.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn parsed(text: &'static str) -> Option<Duration> {
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]))
    }

    #[test]
    fn retry_after_is_parsed_as_seconds() {
        assert_eq!(parsed("2"), Some(Duration::from_secs(2)));
        assert_eq!(parsed(" 0.5"), Some(Duration::from_millis(500)));
        for invalid in ["", "-1", "NaN", "inf", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_are_few_and_not_shorter_than_requested() {
        let mut backoff = Backoff::new();
        assert!(backoff.next(Some(Duration::from_secs(2))) >= Some(Duration::from_secs(2)));
        assert_eq!(backoff.next(Some(Duration::from_secs(60))), None, "longer waits are left to the queue");
        for _ in 0..3 {
            assert!(backoff.next(None).is_some_and(|pause| pause <= Duration::from_secs(2)));
        }
        assert_eq!(backoff.next(None), None);
    }
}
