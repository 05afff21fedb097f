//! A rate limit typed on the command line.

use std::{fmt, str::FromStr, time::Duration};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// A maximum number of operations per unit of time, stored as the pause between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(Duration);

/// A text that is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a rate: write 10 or 10/s for ten per second, 5/min for five per minute")]
pub struct InvalidRate(String);

impl Rate {
    /// Returns a timer that ticks once per operation, the first time at once. Missed ticks are not made up for.
    pub fn interval(self) -> Interval {
        let mut interval = interval(self.0);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = 1.0 / self.0.as_secs_f64();
        if per_second >= 1.0 { write!(f, "{per_second:.0}/s") } else { write!(f, "{:.0}/h", per_second * 3600.0) }
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
        let seconds = match unit {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => 0,
        };
        let number: u32 = number.parse().unwrap_or_default();
        let pause = Duration::from_secs(seconds).checked_div(number).unwrap_or_default();
        if pause.is_zero() { Err(InvalidRate(text.to_owned())) } else { Ok(Self(pause)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_stored_as_the_pause_between_two_operations() {
        for (text, millis) in [("10", 100), ("10/s", 100), ("1/s", 1000), ("5/min", 12_000), ("2/h", 1_800_000)] {
            assert_eq!(text.parse(), Ok(Rate(Duration::from_millis(millis))), "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "0", "0/s", "-1", "1.5", "ten", "10/", "10/day", "/s", "4294967295"] {
            assert_eq!(text.parse::<Rate>(), Err(InvalidRate(text.to_owned())));
        }
    }
}
