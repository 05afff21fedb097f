//! What to tell the queue about a message that was worked on.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use sparks_domain::Timestamp;

use crate::{Class, Delivery, Failure, Settlement};

/// How often and how long somebody tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perseverance {
    /// Failed attempts before a dead letter.
    pub max_receives: u32,
    /// How long to wait for what somebody else has to make.
    pub max_wait: Duration,
}

impl Perseverance {
    const SHORTEST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(60);
    /// How long to wait before looking again for what is not there yet: a share of how long it has been missing.
    const SOONEST_LOOK: Duration = Duration::from_millis(500);
    const LATEST_LOOK: Duration = Duration::from_secs(5);
    /// How long to leave those alone who have too much to do, at the least and at the most: a share of how long it has been.
    const SHORT_REST: Duration = Duration::from_secs(1);
    const LONG_REST: Duration = Duration::from_secs(60);

    /// How the lease on this delivery ends after this result.
    pub fn settlement(&self, result: &Result<(), Failure>, delivery: &Delivery, now: Timestamp) -> Settlement {
        let Err(failure) = result else { return Settlement::Done };
        match failure.cause.class() {
            Class::Transient if delivery.receives < self.max_receives => {
                Settlement::Retry(full_jitter(delivery.receives))
            }
            Class::NotYet if delivery.age(now) < self.max_wait => {
                let look = (delivery.age(now) / 4).clamp(Self::SOONEST_LOOK, Self::LATEST_LOOK);
                Settlement::Wait(look.min(self.max_wait))
            }
            // Too much to do is no fault of the message: it spends no attempt, and has all the time there is.
            Class::Busy => {
                let rest = (delivery.age(now) / 2).clamp(Self::SHORT_REST, Self::LONG_REST);
                Settlement::Wait(rest.mul_f64(fastrand::f64()))
            }
            _ => Settlement::DeadLetter { cause: failure.cause, reason: failure.message.clone() },
        }
    }
}

/// Anything up to twice as long each time, so that many who failed together do not come back together.
fn full_jitter(attempt: u32) -> Duration {
    let whole = ExponentialBuilder::default()
        .with_factor(2.0)
        .with_min_delay(Perseverance::SHORTEST)
        .with_max_delay(Perseverance::LONGEST)
        .without_max_times()
        .build()
        .nth(attempt as usize)
        .unwrap_or(Perseverance::LONGEST);
    whole.mul_f64(fastrand::f64())
}
