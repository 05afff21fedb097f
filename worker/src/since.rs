//! A point in time typed on the command line.

use std::str::FromStr;

use sparks_domain::Timestamp;

/// The start of a period: a point in time, or an age before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From this point in time on.
    At(Timestamp),
    /// From this many milliseconds before now on.
    Ago(i64),
}

/// A text that is neither a point in time nor an age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time: write 2026-11-16T08:30:00Z, 2026-11-16 (midnight UTC), or an age such as 90s, 15m, 2h or 7d"
)]
pub struct InvalidTime(String);

impl Since {
    /// Returns the point in time; an age is subtracted from `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(millis) => Timestamp::from_millis(now.as_millis().saturating_sub(millis)),
        }
    }
}

impl FromStr for Since {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let since = parse_age(text).map(Self::Ago).or_else(|| parse_time(text).map(Self::At));
        since.ok_or_else(|| InvalidTime(text.to_owned()))
    }
}

/// Parses a number and a unit into milliseconds.
fn parse_age(text: &str) -> Option<i64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let millis: i64 = match &text[number.len()..] {
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    number.parse::<i64>().ok().filter(|_| is_number)?.checked_mul(millis)
}

/// Parses a time with its UTC offset, or a date.
fn parse_time(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    // A date is parsed only from exactly ten characters: otherwise a time without an offset would lose its time of day.
    let is_date = text.len() == "2026-11-16".len();
    let date: jiff::civil::Date = text.parse().ok().filter(|_| is_date)?;
    let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(Timestamp::from_millis(midnight.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn check(text: &str, millis: i64) {
        let since: Since = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(since.resolve(Timestamp::from_millis(NOW)).as_millis(), millis, "{text}");
    }

    #[test]
    fn ages_are_counted_back_from_now() {
        check("90s", NOW - 90_000);
        check("15m", NOW - 15 * 60_000);
        check("15min", NOW - 15 * 60_000);
        check("2h", NOW - 2 * 3_600_000);
        check("7d", NOW - 7 * 86_400_000);
        check("0s", NOW);
    }

    #[test]
    fn points_in_time_do_not_depend_on_now() {
        check("2025-08-01T09:24:28.957Z", 1_754_040_268_957);
        check("2025-08-01T11:24:28+02:00", 1_754_040_268_000);
        check("2025-08-01", 1_754_006_400_000);
    }

    #[test]
    fn an_age_beyond_the_calendar_saturates() {
        let since: Since = "100000000d".parse().unwrap_or_else(|error| panic!("{error}"));
        assert!(since.resolve(Timestamp::from_millis(NOW)).as_millis() < -1_000_000_000_000);
    }

    #[test]
    fn other_texts_are_rejected() {
        let wrong = ["", "s", "-5m", "+5m", "1.5h", "7", "7 d", "7w", "yesterday", "2025-13-01", "2025-08-01T09:24"];
        for text in wrong.into_iter().chain(["99999999999999999d", "2025-08-01T09:24:28", "ä", "5µs"]) {
            assert_eq!(text.parse::<Since>(), Err(InvalidTime(text.to_owned())));
        }
    }
}
