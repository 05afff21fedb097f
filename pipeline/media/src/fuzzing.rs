//! Entry points for fuzzing only: behind [`crate::LocalImageProcessor`] this code would seldom be reached.

use sparks_domain::Rejection;

use crate::{LocalImageProcessor, exif::Exif};

/// Reads arbitrary bytes as EXIF.
pub fn exif(tiff: &[u8]) {
    let exif = Exif::read(tiff);
    if let Some(taken_at) = exif.taken_at {
        assert!(taken_at.unix_seconds().is_some(), "{taken_at:?} is not a valid time");
    }
}

/// Runs all checks before decoding. Returns the peak memory of rendering, in bytes.
pub fn validate(processor: &LocalImageProcessor, original: &[u8]) -> Result<u64, Rejection> {
    processor.validate(original).map(|validated| validated.peak_memory())
}
