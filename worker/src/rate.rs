//! How quickly something may be done.

use std::{fmt, str::FromStr, time::Duration};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// At most so much in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(Duration);

/// A text that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no rate: write 10 or 10/s for ten a second, 5/min for five a minute")]
pub struct NoRate(String);

impl Rate {
    /// A clock that ticks once for each, the first time at once. What was slow is not made up for.
    pub fn ticks(self) -> Interval {
        let mut ticks = interval(self.0);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each_second = 1.0 / self.0.as_secs_f64();
        if each_second >= 1.0 { write!(f, "{each_second:.0}/s") } else { write!(f, "{:.0}/h", each_second * 3600.0) }
    }
}

impl FromStr for Rate {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Self, NoRate> {
        let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
        let seconds = match unit {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => 0,
        };
        let number: u32 = number.parse().unwrap_or_default();
        let pause = Duration::from_secs(seconds).checked_div(number).unwrap_or_default();
        if pause.is_zero() { Err(NoRate(text.to_owned())) } else { Ok(Self(pause)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_pause_between_two() {
        for (text, millis) in [("10", 100), ("10/s", 100), ("1/s", 1000), ("5/min", 12_000), ("2/h", 1_800_000)] {
            assert_eq!(text.parse(), Ok(Rate(Duration::from_millis(millis))), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "0", "0/s", "-1", "1.5", "ten", "10/", "10/day", "/s", "4294967295"] {
            assert_eq!(text.parse::<Rate>(), Err(NoRate(text.to_owned())));
        }
    }
}
