//! A part of something, as people type it.

use std::{fmt, str::FromStr};

/// So many of a hundred.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share(f64);

/// A text that is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no share: write 20% or 0.5%, from 0% to 100%")]
pub struct NoShare(String);

impl Share {
    /// How many of so many, rounded. Who asks for some gets at least one, if there is one.
    pub fn of(self, whole: usize) -> usize {
        let part = (whole as f64 * self.0 / 100.0).round() as usize;
        if self.0 > 0.0 { part.max(1).min(whole) } else { 0 }
    }
}

impl FromStr for Share {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
        number.ok().filter(|number| (0.0..=100.0).contains(number)).map(Self).ok_or_else(|| NoShare(text.to_owned()))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected may stop")]

    use super::*;

    #[test]
    fn a_share_is_a_part_of_any_number() {
        let share = |text: &str| text.parse::<Share>().unwrap();
        assert_eq!([share("20%").of(200), share("20").of(7), share("0%").of(50), share("100%").of(3)], [40, 1, 0, 3]);
        assert_eq!(share("1%").of(10), 1, "who asks for some gets one");
        assert_eq!(share("1%").of(0), 0);
        assert_eq!(share("0.5%").to_string(), "0.5%");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "%", "-1%", "101%", "ten", "20 %", "NaN", "inf"] {
            assert_eq!(text.parse::<Share>(), Err(NoShare(text.to_owned())));
        }
    }
}
