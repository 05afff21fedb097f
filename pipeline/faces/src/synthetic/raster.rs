//! Pixels that can be read without a further check.

use sparks_engine::Pixels;

/// As many bytes as the sides promise, and at least one pixel.
pub(super) struct Raster<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    rgb: &'a [u8],
}

impl<'a> Raster<'a> {
    pub(super) fn of(pixels: &'a Pixels) -> Option<Self> {
        let (width, height) = (usize::try_from(pixels.width).ok()?, usize::try_from(pixels.height).ok()?);
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == pixels.rgb.len()).then_some(Self { width, height, rgb: &pixels.rgb })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rgb.chunks_exact(self.width * 3)
    }

    /// The pixel that holds this place; the nearest one for a place outside.
    pub(super) fn at(&self, x: f32, y: f32) -> [u8; 3] {
        // A cast from a float saturates: below 0 is 0.
        let (x, y) = ((x as usize).min(self.width - 1), (y as usize).min(self.height - 1));
        let start = (y * self.width + x) * 3;
        [self.rgb[start], self.rgb[start + 1], self.rgb[start + 2]]
    }
}

/// How bright a pixel is, 0 to 255, as JPEG and WebP weigh it: brightness survives them best.
pub(super) fn luma([r, g, b]: [u8; 3]) -> f32 {
    0.299 * f32::from(r) + 0.587 * f32::from(g) + 0.114 * f32::from(b)
}
