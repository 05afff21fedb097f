//! What fuzzing calls directly, because behind [`crate::Lab`] it would seldom be reached. Nobody else's business.

use sparks_domain::Rejection;

use crate::{Lab, exif::Exif};

/// Reads bytes as EXIF, whatever they are.
pub fn exif(tiff: &[u8]) {
    let exif = Exif::read(tiff);
    if let Some(taken_at) = exif.taken_at {
        assert!(taken_at.unix_seconds().is_some(), "{taken_at:?} is no moment");
    }
}

/// All checks before the first pixel. How much memory the picture will need, if it passes.
pub fn admit(lab: &Lab, original: &[u8]) -> Result<u64, Rejection> {
    lab.admit(original).map(|admitted| admitted.memory())
}
