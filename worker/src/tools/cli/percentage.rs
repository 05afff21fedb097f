//! A percentage typed on the command line.

use std::{fmt, str::FromStr};

/// A value from 0 to 100 percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Percentage(f64);

/// A text that is not a percentage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a percentage: write 20% or 0.5%, from 0% to 100%")]
pub struct InvalidPercentage(String);

impl Percentage {
    /// Returns this percentage of `whole`, rounded; at least 1 unless the percentage or `whole` is 0.
    pub fn of(self, whole: usize) -> usize {
        let part = (whole as f64 * self.0 / 100.0).round() as usize;
        if self.0 > 0.0 { part.max(1).min(whole) } else { 0 }
    }
}

impl FromStr for Percentage {
    type Err = InvalidPercentage;

    fn from_str(text: &str) -> Result<Self, InvalidPercentage> {
        let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
        let number = number.ok().filter(|number| (0.0..=100.0).contains(number));
        number.map(Self).ok_or_else(|| InvalidPercentage(text.to_owned()))
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic on unexpected values")]

    use super::*;

    #[test]
    fn a_percentage_of_a_number_is_rounded_and_at_least_one() {
        let part = |text: &str, whole| text.parse::<Percentage>().unwrap().of(whole);
        assert_eq!([part("20%", 200), part("20", 7), part("0%", 50), part("100%", 3)], [40, 1, 0, 3]);
        assert_eq!(part("1%", 10), 1, "a percentage above 0 selects at least one");
        assert_eq!(part("1%", 0), 0);
        assert_eq!("0.5%".parse::<Percentage>().unwrap().to_string(), "0.5%");
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "%", "-1%", "101%", "ten", "20 %", "NaN", "inf"] {
            assert_eq!(text.parse::<Percentage>(), Err(InvalidPercentage(text.to_owned())));
        }
    }
}
