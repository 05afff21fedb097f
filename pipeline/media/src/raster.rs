//! Decoded pixels.

use crate::{colour::Colours, picture::Picture};

/// What a pixel's channels stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Inks: 0 is none of it, 255 all there is.
    Cmyk,
}

impl Model {
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

/// Eight bits a channel, row by row. `samples` has `width * height * channels` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) model: Model,
    pub(crate) samples: Vec<u8>,
}

impl Raster {
    /// Alpha that hides nothing goes: fewer channels are smaller and quicker. In place, to need no second picture.
    pub(crate) fn without_idle_alpha(mut self) -> Self {
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

    /// The same picture in sRGB.
    pub(crate) fn develop(self, colours: &Colours) -> Picture {
        let Self { width, height, model, samples } = self;
        Picture { width, height, alpha: model.has_alpha(), samples: colours.to_srgb(samples) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idle_alpha_goes() {
        let raster = |model, samples: &[u8]| Raster { width: 2, height: 1, model, samples: samples.to_vec() };
        let opaque = raster(Model::Rgba, &[1, 2, 3, 255, 4, 5, 6, 255]);
        assert_eq!(opaque.without_idle_alpha(), raster(Model::Rgb, &[1, 2, 3, 4, 5, 6]));
        assert_eq!(raster(Model::GreyAlpha, &[1, 255, 2, 255]).without_idle_alpha(), raster(Model::Grey, &[1, 2]));
        for kept in [raster(Model::Rgba, &[1, 2, 3, 255, 4, 5, 6, 254]), raster(Model::Cmyk, &[255; 8])] {
            assert_eq!(kept.clone().without_idle_alpha(), kept);
        }
    }
}
