//! Rate limiting by a token bucket.

use std::time::Instant;

/// A token bucket whose capacity is the number of requests per second.
#[derive(Debug)]
pub struct TokenBucket {
    tokens: f64,
    updated: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub fn full(per_second: f64, now: Instant) -> Self {
        Self { tokens: per_second.max(1.0), updated: now }
    }

    /// Takes a token. Returns false if there is none.
    pub fn take(&mut self, per_second: f64, now: Instant) -> bool {
        let elapsed = now.duration_since(self.updated).as_secs_f64();
        self.tokens = (self.tokens + elapsed * per_second).min(per_second.max(1.0));
        self.updated = now;
        let is_available = self.tokens >= 1.0;
        if is_available {
            self.tokens -= 1.0;
        }
        is_available
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bucket_refills_at_the_configured_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::full(2.0, start);
        let mut takes = |millis: u64| bucket.take(2.0, start + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 400, 500, 500, 9000, 9000, 9000].map(&mut takes),
            [true, true, false, false, true, false, true, true, false]
        );
    }
}
