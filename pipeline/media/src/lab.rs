//! The darkroom on this machine's own cores.

use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::{Darkroom, DarkroomError, Description, Developed, Pixels};

use crate::{
    CropSpec, Fit, Limits, VariantSpec,
    colour::Colours,
    crop,
    decode::decode,
    exif::Exif,
    format::{Format, refusal},
    header::{self, Header},
    reject,
    variant::Plan,
};

#[cfg(test)]
mod colour_tests;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

/// Develops originals with settings that stay the same for its life; the same bytes always give the same pictures.
#[derive(Debug, Clone)]
pub struct Lab {
    limits: Limits,
    large: VariantSpec,
    medium: VariantSpec,
    crop: CropSpec,
}

impl Lab {
    /// With these settings.
    pub fn new(limits: Limits, large: VariantSpec, medium: VariantSpec, crop: CropSpec) -> Self {
        Self { limits, large, medium, crop }
    }

    /// Everything that can be refused without decoding a pixel, cheapest first.
    pub(crate) fn admit<'a>(&self, original: &'a [u8]) -> Result<Admitted<'a>, Rejection> {
        if original.is_empty() {
            return Err(reject(RejectCode::Empty, "the file is empty"));
        }
        self.limits.check_bytes(original.len())?;
        let format = Format::of(original).ok_or_else(|| refusal(original))?;
        let header = header::read(format, original)?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        let size = (header.width, header.height);
        let [large, medium] = [&self.large, &self.medium].map(|spec| spec.plan(size, exif.orientation));
        let eighths = large.eighths().max(medium.eighths());
        self.limits.check(format, &header, || header.memory(eighths, [&large, &medium]))?;
        if format == Format::Jpeg {
            self.limits.check_scans(sparks_jpeg::scans(original).map_err(header::jpeg::rejection)?)?;
        }
        Ok(Admitted { format, header, exif, large, medium, eighths })
    }
}

/// A file that may be decoded, and what is to be made of it.
pub(crate) struct Admitted<'a> {
    pub(crate) format: Format,
    header: Header<'a>,
    exif: Exif,
    large: Plan,
    medium: Plan,
    /// How much of its size is enough for both.
    eighths: u32,
}

impl Admitted<'_> {
    /// What it will need.
    pub(crate) fn memory(&self) -> u64 {
        self.header.memory(self.eighths, [&self.large, &self.medium])
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new(Limits::default(), VariantSpec::large(), VariantSpec::medium(), CropSpec::default())
    }
}

impl Darkroom for Lab {
    fn describe(&self, original: &[u8]) -> Description {
        let format = Format::of(original);
        let exif = format.and_then(|format| header::exif(format, original));
        Description {
            mime_type: format.map(Format::mime_type),
            extension: format.map(Format::extension),
            taken_at: exif.and_then(|exif| Exif::read(exif).taken_at),
        }
    }

    fn measure(&self, picture: &[u8]) -> Option<(u32, u32)> {
        let header = header::read(Format::of(picture)?, picture).ok()?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        Some(exif.orientation.upright_size(header.width, header.height))
    }

    fn develop(&self, original: &[u8]) -> Result<Developed, DarkroomError> {
        let Admitted { format, header, exif, large, medium, eighths } = self.admit(original)?;
        let (width, height) = exif.orientation.upright_size(header.width, header.height);
        let negative = decode(format, original, eighths, &self.limits)?;
        let colours = Colours::of(negative.model(), negative.profile.as_deref());

        // Turned and brought to sRGB after shrinking: the full picture would need its memory twice, and more time.
        let shows_all = self.large.fit == Fit::Inside && medium.can_follow(&large);
        let large = negative.print(&large)?;
        let medium = if shows_all {
            large.print(&self.medium.plan((large.width, large.height), exif.orientation))?
        } else {
            negative.print(&medium)?
        };
        drop(negative);
        let [large, medium] = [large, medium].map(|raster| raster.upright(exif.orientation).develop(&colours));

        Ok(Developed {
            mime_type: format.mime_type(),
            width,
            height,
            taken_at: exif.taken_at,
            large: self.large.encode(&large)?,
            medium: self.medium.encode(&medium)?,
            pixels: large.over_white(),
        })
    }

    fn open(&self, picture: &[u8]) -> Result<Pixels, DarkroomError> {
        let Admitted { format, exif, large, eighths, .. } = self.admit(picture)?;
        let negative = decode(format, picture, eighths, &self.limits)?;
        let colours = Colours::of(negative.model(), negative.profile.as_deref());
        let large = negative.print(&large)?.upright(exif.orientation);
        Ok(large.develop(&colours).over_white())
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        crop::cut(pixels, bounds, &self.crop)
    }

    fn jpeg(&self, pixels: &Pixels, most_bytes: usize) -> Result<Vec<u8>, Rejection> {
        crop::whole(pixels, most_bytes)
    }
}
