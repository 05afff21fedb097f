//! The capture time in a photo's EXIF.

use jiff::civil::DateTime;
use sparks_domain::TakenAt;

/// The year of the oldest photograph: an earlier year is an unset clock or garbage.
const FIRST_YEAR: i16 = 1826;
/// The offset of Kiribati, the largest in use.
const LARGEST_OFFSET_HOURS: u8 = 14;

/// Parses EXIF date and offset texts. An invalid offset is dropped; an invalid time gives `None`.
pub(crate) fn parse(time: &str, offset: Option<&str>) -> Option<TakenAt> {
    let time = time.trim();
    // The form of the EXIF standard, and one that some phones write.
    let forms = ["%Y:%m:%d %H:%M:%S", "%Y-%m-%d %H:%M:%S"];
    let local = forms.iter().find_map(|form| DateTime::strptime(form, time).ok())?;
    if local.year() < FIRST_YEAR {
        return None;
    }
    let offset = offset.map(str::trim).filter(|offset| is_offset(offset)).unwrap_or_default();
    Some(TakenAt(format!("{local}{offset}"))).filter(|taken_at| taken_at.unix_seconds().is_some())
}

fn is_offset(text: &str) -> bool {
    let [b'+' | b'-', h1, h2, b':', m1, m2] = text.as_bytes() else { return false };
    let number = |tens: &u8, ones: &u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + (ones - b'0'))
    };
    number(h1, h2).is_some_and(|hours| hours <= LARGEST_OFFSET_HOURS)
        && number(m1, m2).is_some_and(|minutes| minutes < 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_iso_8601_with_the_stored_offset() {
        let cases = [
            ("2014:05:01 10:20:30", None, "2014-05-01T10:20:30", 1_398_939_630),
            ("2014:05:01 10:20:30", Some("+02:00"), "2014-05-01T10:20:30+02:00", 1_398_932_430),
            ("2014:05:01 10:20:30", Some("-03:30"), "2014-05-01T10:20:30-03:30", 1_398_952_230),
            ("2014-05-01 00:00:00", Some("   :  "), "2014-05-01T00:00:00", 1_398_902_400),
            ("2014:05:01 10:20:30", Some("+99:99"), "2014-05-01T10:20:30", 1_398_939_630),
            ("2014:05:01 10:20:30", Some("Z"), "2014-05-01T10:20:30", 1_398_939_630),
        ];
        for (time, offset, expected, seconds) in cases {
            let taken_at = parse(time, offset).expect(time);
            assert_eq!(taken_at.0, expected);
            assert_eq!(taken_at.unix_seconds(), Some(seconds));
        }
    }

    #[test]
    fn invalid_times_are_absent() {
        let cases = [
            "",
            "0000:00:00 00:00:00",
            "    :  :     :  :  ",
            "                   ",
            "2014:02:30 10:20:30",
            "2014:05:01 25:20:30",
            "2014:05:01",
            "0001:01:01 00:00:00",
            "2014:05:01 10:20:30 and more",
            "yesterday at tea time",
            "-2014:05:01 10:20:30",
            "20é4:05:01 10:20:30",
        ];
        for time in cases {
            assert_eq!(parse(time, None), None, "{time}");
        }
    }
}
