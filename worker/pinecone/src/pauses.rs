//! How long to wait before asking again.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest wait that a service may ask for. Whoever is to wait longer does it where a message waits, not here.
const LONGEST: Duration = Duration::from_secs(5);

/// After so long nothing is asked again.
const PATIENCE: Duration = Duration::from_secs(15);

/// Random pauses below a bound that doubles (full jitter), few.
pub(crate) struct Pauses {
    bounds: ExponentialBackoff,
    began: Instant,
}

impl Pauses {
    /// Begins now.
    pub fn new() -> Self {
        let bounds = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(2))
            .with_factor(2.0)
            .with_max_times(4);
        Self { bounds: bounds.build(), began: Instant::now() }
    }

    /// The next pause, and no shorter than the service asks for; nothing where it is time to give up.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let asked = asked.unwrap_or_default();
        if asked > LONGEST || self.began.elapsed() >= PATIENCE {
            return None;
        }
        self.bounds.next().map(|bound| asked + bound.mul_f64(fastrand::f64()))
    }
}

/// How long the service asks to wait. Dates are left alone: clocks differ.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn asks(text: &'static str) -> Option<Duration> {
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]))
    }

    #[test]
    fn a_service_may_ask_for_seconds() {
        assert_eq!(asks("2"), Some(Duration::from_secs(2)));
        assert_eq!(asks(" 0.5"), Some(Duration::from_millis(500)));
        for nothing in ["", "-1", "NaN", "inf", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(asks(nothing), None, "{nothing}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_are_few_and_no_shorter_than_asked_for() {
        let mut pauses = Pauses::new();
        assert!(pauses.next(Some(Duration::from_secs(2))) >= Some(Duration::from_secs(2)));
        assert_eq!(pauses.next(Some(Duration::from_secs(60))), None, "a message waits for that");
        for _ in 0..3 {
            assert!(pauses.next(None).is_some_and(|pause| pause <= Duration::from_secs(2)));
        }
        assert_eq!(pauses.next(None), None);
    }
}
