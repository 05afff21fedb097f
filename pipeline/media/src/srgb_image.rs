//! A finished image in sRGB, the colour space that viewers assume for a file without a profile.

use sparks_engine::Pixels;

/// RGB or RGBA pixels, eight bits per channel, row by row. `samples` has `width * height * channels` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SrgbImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) has_alpha: bool,
    pub(crate) samples: Vec<u8>,
}

impl SrgbImage {
    /// Composites transparent pixels on a white background.
    pub(crate) fn composite_on_white(self) -> Pixels {
        let Self { width, height, has_alpha, samples } = self;
        let rgb = if has_alpha { samples.chunks_exact(4).flat_map(blend_with_white).collect() } else { samples };
        Pixels { width, height, rgb }
    }
}

fn blend_with_white(pixel: &[u8]) -> [u8; 3] {
    let alpha = u32::from(pixel[3]);
    let mix = |colour: u8| ((u32::from(colour) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
    [mix(pixel[0]), mix(pixel[1]), mix(pixel[2])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_pixels_become_white() {
        let samples = vec![10, 20, 30, 255, 10, 20, 30, 0, 0, 0, 0, 128];
        let pixels = SrgbImage { width: 3, height: 1, has_alpha: true, samples }.composite_on_white();
        assert_eq!(pixels.rgb, [10, 20, 30, 255, 255, 255, 127, 127, 127]);
    }
}
