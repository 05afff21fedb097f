//! How much of a picture is really in the file.
//!
//! Blocks are missing where the data ends too early or contradicts itself, and bytes are left over where it does not end with
//! the last block. A single wrong bit mostly shows in neither, and is not looked for.

use crate::Error;

/// A scan that misses no more than one in so many blocks is taken: cameras do forget the last few.
const MISSING_SHARE: u64 = 200;
/// Padding before a marker is no damage, up to this much and a share of the data.
const PADDING: u64 = 1024;

/// What came of a scan.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) units: u64,
    pub(crate) missing: u64,
    pub(crate) bytes: u64,
    pub(crate) left_over: u64,
}

impl Tally {
    pub(crate) fn judge(&self) -> Result<(), Error> {
        let what = if self.missing > self.units / MISSING_SHARE {
            let percent = (self.missing * 100 / self.units.max(1)).max(1);
            format!("{percent}% of its picture cannot be read")
        } else if self.left_over > PADDING + self.bytes / MISSING_SHARE {
            format!("{} bytes of its picture are in no place", self.left_over)
        } else {
            return Ok(());
        };
        Err(Error::Damaged(format!("the JPEG is damaged: {what}; take another copy")))
    }
}
