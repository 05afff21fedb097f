//! A duration typed on the command line.

use std::{str::FromStr, time::Duration};

/// A duration written as a number and a unit, such as `90s` or `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write 90s, 15m, 2h or 7d")]
pub struct InvalidDuration(String);

impl FromStr for HumanDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: u64 = match &text[number.len()..] {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => 0,
        };
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let seconds = number.parse::<u64>().ok().filter(|_| is_number && unit > 0).and_then(|n| n.checked_mul(unit));
        seconds.map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(|| InvalidDuration(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7200), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(text.parse(), Ok(HumanDuration(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "90", "s", "-1s", "1.5h", "+2s", "1w", "99999999999999999999d"] {
            assert_eq!(text.parse::<HumanDuration>(), Err(InvalidDuration(text.to_owned())));
        }
    }
}
