//! The darkroom on this machine's own cores.

use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::{Darkroom, DarkroomError, Description, Developed, Pixels};

use crate::{
    CropSpec, Fit, Limits, VariantSpec,
    colour::Colours,
    crop,
    decode::{Decoded, decode},
    exif::Exif,
    format::{Format, refusal},
    header::{self, Header},
    reject,
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
    pub(crate) fn admit<'a>(&self, original: &'a [u8]) -> Result<(Format, Header<'a>), Rejection> {
        if original.is_empty() {
            return Err(reject(RejectCode::Empty, "the file is empty"));
        }
        self.limits.check_bytes(original.len())?;
        let format = Format::of(original).ok_or_else(|| refusal(original))?;
        let header = header::read(format, original)?;
        self.limits.check(format, &header)?;
        if format == Format::Jpeg {
            header::jpeg::check(original, &self.limits)?;
        }
        Ok((format, header))
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
        let (format, header) = self.admit(original)?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        let Decoded { raster: full, profile } = decode(format, original, &self.limits)?;
        let colours = Colours::of(full.model, profile.as_deref());
        let (width, height) = exif.orientation.upright_size(full.width, full.height);

        // Turned and brought to sRGB after shrinking: the full picture would need its memory twice, and more time.
        let large = self.large.pick(&full, exif.orientation)?;
        let shows_all = self.large.fit == Fit::Inside && self.medium.can_be_of(&large, &full, exif.orientation);
        let medium = self.medium.pick(if shows_all { &large } else { &full }, exif.orientation)?;
        drop(full);
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
        let (format, header) = self.admit(picture)?;
        let exif = header.exif.map(Exif::read).unwrap_or_default();
        let Decoded { raster: full, profile } = decode(format, picture, &self.limits)?;
        let colours = Colours::of(full.model, profile.as_deref());
        let large = self.large.pick(&full, exif.orientation)?.upright(exif.orientation);
        Ok(large.develop(&colours).over_white())
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        crop::cut(pixels, bounds, &self.crop)
    }
}
