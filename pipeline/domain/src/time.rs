//! Timestamps to the millisecond, in the platform's format.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970, written `2025-08-01T09:24:28.957Z`. The current time comes from a clock that is passed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Returns the timestamp `millis` after 1970, clamped to the range of the calendar.
    pub fn from_millis(millis: i64) -> Self {
        let limits = jiff::Timestamp::MIN.as_millisecond()..=jiff::Timestamp::MAX.as_millisecond();
        let clamped = millis.clamp(*limits.start(), *limits.end());
        Self(jiff::Timestamp::from_millisecond(clamped).unwrap_or_default())
    }

    /// Returns milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Returns whole seconds since 1970, the format of `createdAt`.
    pub fn unix_seconds(self) -> i64 {
        self.as_millis().div_euclid(1000)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self::from_millis(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, jiff::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_with_milliseconds_and_z() -> Result<(), jiff::Error> {
        assert_eq!(Timestamp::from_millis(1_754_040_268_957).to_string(), "2025-08-01T09:24:28.957Z");
        assert_eq!(Timestamp::from_millis(1_754_040_268_000).to_string(), "2025-08-01T09:24:28.000Z");
        assert_eq!("2025-08-01T11:24:28.957+02:00".parse::<Timestamp>()?.as_millis(), 1_754_040_268_957);
        assert_eq!(Timestamp::from_millis(-1).unix_seconds(), -1);
        Ok(())
    }
}
