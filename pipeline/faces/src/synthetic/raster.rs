//! Pixels whose size has been checked.

use sparks_engine::Pixels;

/// RGB pixels: `width * height * 3` bytes, at least one pixel.
pub(super) struct Raster<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    rgb: &'a [u8],
}

impl<'a> Raster<'a> {
    pub(super) fn from_pixels(pixels: &'a Pixels) -> Option<Self> {
        let (width, height) = (usize::try_from(pixels.width).ok()?, usize::try_from(pixels.height).ok()?);
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == pixels.rgb.len()).then_some(Self { width, height, rgb: &pixels.rgb })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rgb.chunks_exact(self.width * 3)
    }

    /// Returns the pixel at this position; outside the image the nearest one.
    pub(super) fn at(&self, x: f32, y: f32) -> [u8; 3] {
        // A cast from a float saturates: below 0 is 0.
        let (x, y) = ((x as usize).min(self.width - 1), (y as usize).min(self.height - 1));
        let start = (y * self.width + x) * 3;
        [self.rgb[start], self.rgb[start + 1], self.rgb[start + 2]]
    }
}

/// Returns the luma of a pixel (BT.601), 0 to 255: JPEG and WebP preserve it best.
pub(super) fn luma([r, g, b]: [u8; 3]) -> f32 {
    0.299 * f32::from(r) + 0.587 * f32::from(g) + 0.114 * f32::from(b)
}
