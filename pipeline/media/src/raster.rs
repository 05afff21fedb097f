//! Decoded pixels.

use sparks_engine::Pixels;

/// Eight bits a channel, RGB or RGBA, row by row. `samples` has `width * height * channels` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) alpha: bool,
    pub(crate) samples: Vec<u8>,
}

impl Raster {
    pub(crate) fn channels(&self) -> usize {
        if self.alpha { 4 } else { 3 }
    }

    /// Alpha that hides nothing goes: three channels are smaller and quicker. In place, to need no second picture.
    pub(crate) fn without_idle_alpha(mut self) -> Self {
        if !self.alpha || self.samples.chunks_exact(4).any(|pixel| pixel[3] != u8::MAX) {
            return self;
        }
        let pixels = self.samples.len() / 4;
        for pixel in 0..pixels {
            self.samples.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
        }
        self.samples.truncate(pixels * 3);
        self.samples.shrink_to_fit();
        Self { alpha: false, ..self }
    }

    /// What is seen on a white page.
    pub(crate) fn over_white(self) -> Pixels {
        let Self { width, height, alpha, samples } = self;
        let rgb = if alpha { samples.chunks_exact(4).flat_map(on_white).collect() } else { samples };
        Pixels { width, height, rgb }
    }
}

fn on_white(pixel: &[u8]) -> [u8; 3] {
    let alpha = u32::from(pixel[3]);
    let mix = |colour: u8| ((u32::from(colour) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
    [mix(pixel[0]), mix(pixel[1]), mix(pixel[2])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparency_shows_white() {
        let samples = vec![10, 20, 30, 255, 10, 20, 30, 0, 0, 0, 0, 128];
        let pixels = Raster { width: 3, height: 1, alpha: true, samples }.over_white();
        assert_eq!(pixels.rgb, [10, 20, 30, 255, 255, 255, 127, 127, 127]);
    }

    #[test]
    fn only_idle_alpha_goes() {
        let opaque = Raster { width: 2, height: 1, alpha: true, samples: vec![1, 2, 3, 255, 4, 5, 6, 255] };
        assert_eq!(opaque.without_idle_alpha().samples, [1, 2, 3, 4, 5, 6]);
        let sheer = Raster { width: 1, height: 1, alpha: true, samples: vec![1, 2, 3, 254] };
        assert_eq!(sheer.clone().without_idle_alpha(), sheer);
    }
}
