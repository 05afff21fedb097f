//! A length of time, as people type it.

use std::{str::FromStr, time::Duration};

/// So long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no length of time: write 90s, 15m, 2h or 7d")]
pub struct NoSpan(String);

impl FromStr for Span {
    type Err = NoSpan;

    fn from_str(text: &str) -> Result<Self, NoSpan> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: u64 = match &text[number.len()..] {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => 0,
        };
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let seconds = number.parse::<u64>().ok().filter(|_| digits && unit > 0).and_then(|n| n.checked_mul(unit));
        seconds.map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(|| NoSpan(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7200), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "90", "s", "-1s", "1.5h", "+2s", "1w", "99999999999999999999d"] {
            assert_eq!(text.parse::<Span>(), Err(NoSpan(text.to_owned())));
        }
    }
}
