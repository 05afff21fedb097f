//! Detection of incomplete image data.
//!
//! MCUs are missing where the data ends too early or is invalid, and bytes are unread where it does not end with the last MCU.
//! A single flipped bit usually causes neither and is not detected.

use crate::Error;

/// A scan may miss one in this many MCUs: some cameras omit the last few.
const MISSING_SHARE: u64 = 200;
/// Unread bytes before a marker are padding, up to this many plus a share of the data.
const PADDING: u64 = 1024;

/// The number of MCUs and bytes of a scan that could not be read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Completeness {
    pub(crate) mcus: u64,
    pub(crate) missing: u64,
    pub(crate) bytes: u64,
    pub(crate) unread: u64,
}

impl Completeness {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let what = if self.missing > self.mcus / MISSING_SHARE {
            let percent = (self.missing * 100 / self.mcus.max(1)).max(1);
            format!("{percent}% of its pixels cannot be read")
        } else if self.unread > PADDING + self.bytes / MISSING_SHARE {
            format!("{} bytes of its image data are surplus", self.unread)
        } else {
            return Ok(());
        };
        Err(Error::Damaged(format!("the JPEG is damaged: {what}; upload another copy")))
    }
}
