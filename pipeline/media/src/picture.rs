//! A finished picture: sRGB, as every viewer takes a file that says nothing else.

use sparks_engine::Pixels;

/// Eight bits a channel, RGB or RGBA, row by row. `samples` has `width * height * channels` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) alpha: bool,
    pub(crate) samples: Vec<u8>,
}

impl Picture {
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
        let pixels = Picture { width: 3, height: 1, alpha: true, samples }.over_white();
        assert_eq!(pixels.rgb, [10, 20, 30, 255, 255, 255, 127, 127, 127]);
    }
}
