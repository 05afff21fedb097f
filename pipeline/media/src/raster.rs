//! Decoded pixels in the file's own colour model.

use crate::{colour::SrgbConverter, srgb_image::SrgbImage};

/// The meaning of a pixel's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColourModel {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Amounts of ink: 0 is none, 255 is full coverage.
    Cmyk,
}

impl ColourModel {
    pub(crate) fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    pub(crate) fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }

    fn without_alpha(self) -> Self {
        match self {
            Self::GreyAlpha => Self::Grey,
            Self::Rgba => Self::Rgb,
            Self::Grey | Self::Rgb | Self::Cmyk => self,
        }
    }
}

/// Interleaved samples, eight bits per channel, row by row. `samples` has `width * height * channels` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) model: ColourModel,
    pub(crate) samples: Vec<u8>,
}

impl Raster {
    /// Drops an alpha channel that is opaque everywhere: fewer channels are smaller and faster. Works in place, so that no
    /// second image is in memory.
    pub(crate) fn without_opaque_alpha(mut self) -> Self {
        let channels = self.model.channels();
        let alpha = channels - 1;
        if !self.model.has_alpha() || self.samples.chunks_exact(channels).any(|pixel| pixel[alpha] != u8::MAX) {
            return self;
        }
        let pixels = self.samples.len() / channels;
        for pixel in 0..pixels {
            self.samples.copy_within(pixel * channels..pixel * channels + alpha, pixel * alpha);
        }
        self.samples.truncate(pixels * alpha);
        self.samples.shrink_to_fit();
        Self { model: self.model.without_alpha(), ..self }
    }

    /// Converts the pixels to sRGB.
    pub(crate) fn into_srgb(self, converter: &SrgbConverter) -> SrgbImage {
        let Self { width, height, model, samples } = self;
        SrgbImage { width, height, has_alpha: model.has_alpha(), samples: converter.to_srgb(samples) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_opaque_alpha_is_dropped() {
        let raster = |model, samples: &[u8]| Raster { width: 2, height: 1, model, samples: samples.to_vec() };
        let opaque = raster(ColourModel::Rgba, &[1, 2, 3, 255, 4, 5, 6, 255]);
        assert_eq!(opaque.without_opaque_alpha(), raster(ColourModel::Rgb, &[1, 2, 3, 4, 5, 6]));
        let grey = raster(ColourModel::GreyAlpha, &[1, 255, 2, 255]);
        assert_eq!(grey.without_opaque_alpha(), raster(ColourModel::Grey, &[1, 2]));
        for kept in [raster(ColourModel::Rgba, &[1, 2, 3, 255, 4, 5, 6, 254]), raster(ColourModel::Cmyk, &[255; 8])] {
            assert_eq!(kept.clone().without_opaque_alpha(), kept);
        }
    }
}
