//! How much of anything a file may have.

use sparks_domain::{RejectCode, Rejection};

use crate::reject;

/// What keeps hostile files from taking the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size of the file.
    pub max_bytes: u64,
    /// Width times height.
    pub max_pixels: u64,
    /// Width, and height.
    pub max_side: u32,
    /// EXIF and ICC together.
    pub max_metadata_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 52_428_800, max_pixels: 50_000_000, max_side: 16_383, max_metadata_bytes: 1_048_576 }
    }
}

impl Limits {
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), Rejection> {
        let (bytes, limit) = (bytes as u64, self.max_bytes);
        if bytes <= limit {
            return Ok(());
        }
        Err(reject(RejectCode::TooManyBytes, format!("a file of {bytes} bytes is over the limit of {limit} bytes")))
    }

    pub(crate) fn check_size(&self, width: u32, height: u32) -> Result<(), Rejection> {
        if width == 0 || height == 0 {
            return Err(reject(RejectCode::Damaged, format!("the picture says it is {width} x {height} pixels")));
        }
        let too_many = |limit: String| {
            reject(
                RejectCode::TooManyPixels,
                format!("{width} x {height} pixels are more than the limit of {limit}: make it smaller"),
            )
        };
        if u64::from(width) * u64::from(height) > self.max_pixels {
            return Err(too_many(format!("{} megapixels", self.max_pixels as f64 / 1e6)));
        }
        if width.max(height) > self.max_side {
            return Err(too_many(format!("{} pixels a side", self.max_side)));
        }
        Ok(())
    }

    pub(crate) fn check_metadata(&self, bytes: u64) -> Result<(), Rejection> {
        let limit = self.max_metadata_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let message = format!("EXIF and ICC of {bytes} bytes are over the limit of {limit} bytes: strip them");
        Err(reject(RejectCode::TooMuchMetadata, message))
    }

    /// For the decoders' own books. The pixels they return are ours and not counted there: this is for what they
    /// allocate on the side, such as a GIF's frame or a PNG's unpacked ICC profile.
    pub(crate) fn of_decoder(&self, side_bytes: u64) -> image::Limits {
        let mut limits = image::Limits::no_limits();
        limits.max_image_width = Some(self.max_side);
        limits.max_image_height = Some(self.max_side);
        limits.max_alloc = Some(side_bytes);
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_measure_and_the_limit() {
        let limits = Limits::default();
        let message = |result: Result<(), Rejection>| result.expect_err("over the limit").message;
        assert_eq!(
            message(limits.check_size(60_000, 60_000)),
            "60000 x 60000 pixels are more than the limit of 50 megapixels: make it smaller"
        );
        assert_eq!(
            message(limits.check_size(16_384, 10)),
            "16384 x 10 pixels are more than the limit of 16383 pixels a side: make it smaller"
        );
        assert_eq!(message(limits.check_size(0, 10)), "the picture says it is 0 x 10 pixels");
        assert_eq!(
            message(limits.check_bytes(52_428_801)),
            "a file of 52428801 bytes is over the limit of 52428800 bytes"
        );
        assert!(limits.check_size(10_000, 5_000).is_ok());
        assert!(limits.check_bytes(52_428_800).is_ok());
        assert!(limits.check_metadata(1_048_576).is_ok());
        assert_eq!(limits.check_metadata(1_048_577).expect_err("over the limit").code, RejectCode::TooMuchMetadata);
    }
}
