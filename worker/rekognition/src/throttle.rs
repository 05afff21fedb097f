//! Counting requests against a rate.

use std::time::Instant;

/// What is left of the requests that may be answered.
#[derive(Debug)]
pub struct Bucket {
    left: f64,
    since: Instant,
}

impl Bucket {
    /// All of a second's.
    pub fn full(per_second: f64, now: Instant) -> Self {
        Self { left: per_second.max(1.0), since: now }
    }

    /// Whether one more may be answered.
    pub fn take(&mut self, per_second: f64, now: Instant) -> bool {
        let passed = now.duration_since(self.since).as_secs_f64();
        self.left = (self.left + passed * per_second).min(per_second.max(1.0));
        self.since = now;
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_comes_too_often_waits_for_the_next_second() {
        let start = Instant::now();
        let mut bucket = Bucket::full(2.0, start);
        let mut takes = |millis: u64| bucket.take(2.0, start + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 400, 500, 500, 9000, 9000, 9000].map(&mut takes),
            [true, true, false, false, true, false, true, true, false]
        );
    }
}
