//! Implementation of the `ImageProcessor` port on the CPU of this machine.

use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::{ImageError, ImageInfo, ImageProcessor, Pixels, RenderedImage};

use crate::{
    CropSpec, Fit, Limits, VariantSpec,
    colour::SrgbConverter,
    crop,
    decode::decode,
    exif::Exif,
    format::{Format, unsupported_format},
    header::{self, Header},
    reject,
    variant::ResizePlan,
};

#[cfg(test)]
mod colour_tests;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

/// Renders originals with fixed settings: the same bytes always give the same variants.
#[derive(Debug, Clone)]
pub struct LocalImageProcessor {
    limits: Limits,
    large: VariantSpec,
    medium: VariantSpec,
    crop: CropSpec,
}

impl LocalImageProcessor {
    /// Creates a processor with these settings.
    pub fn new(limits: Limits, large: VariantSpec, medium: VariantSpec, crop: CropSpec) -> Self {
        Self { limits, large, medium, crop }
    }

    /// Runs all checks that need no decoded pixel, cheapest first.
    pub(crate) fn validate<'a>(&self, original: &'a [u8]) -> Result<ValidatedFile<'a>, Rejection> {
        if original.is_empty() {
            return Err(reject(RejectCode::Empty, "the file is empty"));
        }
        self.limits.check_bytes(original.len())?;
        let format = Format::detect(original).ok_or_else(|| unsupported_format(original))?;
        let header = header::read(format, original)?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        let size = (header.width, header.height);
        let [large, medium] = [&self.large, &self.medium].map(|spec| spec.plan(size, exif.orientation));
        let scale_num = large.scale_num().max(medium.scale_num());
        self.limits.check(format, &header, || header.peak_memory(scale_num, [&large, &medium]))?;
        if format == Format::Jpeg {
            self.limits.check_scans(sparks_jpeg::count_scans(original).map_err(header::jpeg::rejection)?)?;
        }
        Ok(ValidatedFile { format, header, exif, large, medium, scale_num })
    }
}

/// A file that passed all checks, with the plans of its variants.
pub(crate) struct ValidatedFile<'a> {
    pub(crate) format: Format,
    header: Header<'a>,
    exif: Exif,
    large: ResizePlan,
    medium: ResizePlan,
    /// The smallest scaled IDCT (`scale_num / 8`) that is enough for both variants.
    scale_num: u32,
}

impl ValidatedFile<'_> {
    /// Returns the peak memory of rendering, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.header.peak_memory(self.scale_num, [&self.large, &self.medium])
    }
}

impl Default for LocalImageProcessor {
    fn default() -> Self {
        Self::new(Limits::default(), VariantSpec::large(), VariantSpec::medium(), CropSpec::default())
    }
}

impl ImageProcessor for LocalImageProcessor {
    fn inspect(&self, original: &[u8]) -> ImageInfo {
        let format = Format::detect(original);
        let exif = format.and_then(|format| header::exif(format, original));
        ImageInfo {
            mime_type: format.map(Format::mime_type),
            extension: format.map(Format::extension),
            taken_at: exif.and_then(|exif| Exif::read(exif).taken_at),
        }
    }

    fn dimensions(&self, encoded: &[u8]) -> Option<(u32, u32)> {
        let header = header::read(Format::detect(encoded)?, encoded).ok()?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        Some(exif.orientation.upright_size(header.width, header.height))
    }

    fn render(&self, original: &[u8]) -> Result<RenderedImage, ImageError> {
        let ValidatedFile { format, header, exif, large, medium, scale_num } = self.validate(original)?;
        let (width, height) = exif.orientation.upright_size(header.width, header.height);
        let decoded = decode(format, original, scale_num, &self.limits)?;
        let converter = SrgbConverter::new(decoded.model(), decoded.profile.as_deref());

        // Orientation and sRGB conversion follow the resize: at full size they would take twice the memory and more time.
        let can_derive = self.large.fit == Fit::Inside && medium.can_derive_from(&large);
        let large = decoded.resample(&large)?;
        let medium = if can_derive {
            large.resample(&self.medium.plan((large.width, large.height), exif.orientation))?
        } else {
            decoded.resample(&medium)?
        };
        drop(decoded);
        let [large, medium] = [large, medium].map(|raster| raster.orient(exif.orientation).into_srgb(&converter));

        Ok(RenderedImage {
            mime_type: format.mime_type(),
            width,
            height,
            taken_at: exif.taken_at,
            large: self.large.encode(&large)?,
            medium: self.medium.encode(&medium)?,
            pixels: large.composite_on_white(),
        })
    }

    fn decode(&self, encoded: &[u8]) -> Result<Pixels, ImageError> {
        let ValidatedFile { format, exif, large, scale_num, .. } = self.validate(encoded)?;
        let decoded = decode(format, encoded, scale_num, &self.limits)?;
        let converter = SrgbConverter::new(decoded.model(), decoded.profile.as_deref());
        let large = decoded.resample(&large)?.orient(exif.orientation);
        Ok(large.into_srgb(&converter).composite_on_white())
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        crop::crop_face(pixels, bounds, &self.crop)
    }

    fn encode_jpeg(&self, pixels: &Pixels, max_bytes: usize) -> Result<Vec<u8>, Rejection> {
        crop::encode_within(pixels, max_bytes)
    }
}
