//! Resource limits for untrusted files.

use sparks_domain::{RejectCode, Rejection};

use crate::{format::Format, header::Header, reject};

/// Limits that keep hostile files from exhausting memory or CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of the file.
    pub max_bytes: u64,
    /// Width times height.
    pub max_pixels: u64,
    /// Width, and height, in pixels.
    pub max_side: u32,
    /// Size of EXIF and ICC together.
    pub max_metadata_bytes: u64,
    /// Frames of an animation, of which only the first is decoded.
    pub max_frames: u32,
    /// Scans of a JPEG. Encoders write about ten.
    pub max_scans: u32,
    /// Peak memory of one photo, estimated from its header.
    pub max_memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 52_428_800,
            max_pixels: 50_000_000,
            max_side: 16_383,
            max_metadata_bytes: 1_048_576,
            max_frames: 1000,
            max_scans: 32,
            max_memory: 480 << 20,
        }
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

    /// Checks everything a header declares before anything is allocated. `memory` is called only for dimensions within the
    /// limits.
    pub(crate) fn check(&self, format: Format, header: &Header<'_>, memory: impl Fn() -> u64) -> Result<(), Rejection> {
        self.check_size(header.width, header.height)?;
        self.check_metadata(header.metadata_bytes)?;
        self.check_frames(format, header.frames)?;
        self.check_memory(format, header, memory())
    }

    pub(crate) fn check_size(&self, width: u32, height: u32) -> Result<(), Rejection> {
        if width == 0 || height == 0 {
            return Err(reject(RejectCode::Damaged, format!("the image has a size of {width} x {height} pixels")));
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

    fn check_frames(&self, format: Format, frames: u32) -> Result<(), Rejection> {
        let (name, limit) = (format.name(), self.max_frames);
        if frames <= limit {
            return Ok(());
        }
        let message = format!("the {name} has {frames} frames, more than the limit of {limit}: export a single frame");
        Err(reject(RejectCode::TooManyPixels, message))
    }

    pub(crate) fn check_scans(&self, scans: u32) -> Result<(), Rejection> {
        let limit = self.max_scans;
        if scans <= limit {
            return Ok(());
        }
        let message = format!("the JPEG has {scans} scans, more than the limit of {limit}: save it again");
        Err(reject(RejectCode::Damaged, message))
    }

    fn check_memory(&self, format: Format, header: &Header<'_>, memory: u64) -> Result<(), Rejection> {
        if memory <= self.max_memory {
            return Ok(());
        }
        let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let message = format!(
            "this {} of {} x {} pixels needs {} MB of memory, more than the limit of {} MB: make it smaller",
            format.name(),
            header.width,
            header.height,
            megabytes(memory),
            megabytes(self.max_memory)
        );
        Err(reject(RejectCode::TooManyPixels, message))
    }

    /// Returns the limits for a decoder of the `image` crate. `aux_bytes` bounds its internal allocations, such as a GIF frame
    /// or a PNG's inflated ICC profile; the returned pixels are not counted there.
    pub(crate) fn decoder_limits(&self, aux_bytes: u64) -> image::Limits {
        let mut limits = image::Limits::no_limits();
        limits.max_image_width = Some(self.max_side);
        limits.max_image_height = Some(self.max_side);
        limits.max_alloc = Some(aux_bytes);
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_value_and_the_limit() {
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
        assert_eq!(message(limits.check_size(0, 10)), "the image has a size of 0 x 10 pixels");
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
