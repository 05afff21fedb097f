//! Read access to the pixels of a photo.

use sparks_engine::Pixels;
use sparks_resize::{Filter, Layout, resample};

/// Upright RGB pixels, one byte per channel, at least one pixel.
#[derive(Clone, Copy)]
pub struct ImageView<'a> {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    rgb: &'a [u8],
}

/// A rectangle of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Left edge.
    pub x: usize,
    /// Upper edge.
    pub y: usize,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

impl<'a> ImageView<'a> {
    /// Returns a view, or `None` if the image is empty or its number of bytes is wrong.
    pub fn from_pixels(pixels: &'a Pixels) -> Option<Self> {
        Self::new(pixels.width as usize, pixels.height as usize, &pixels.rgb)
    }

    /// Returns a view of these bytes.
    pub fn new(width: usize, height: usize, rgb: &'a [u8]) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == rgb.len()).then_some(Self { width, height, rgb })
    }

    /// Returns the region of the whole image.
    pub fn full_region(&self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// Returns a pixel; outside the image the nearest one.
    pub fn pixel(&self, x: isize, y: isize) -> [u8; 3] {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        let at = (y * self.width + x) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Resizes a region by bilinear filtering to RGB bytes.
    pub fn resize(&self, region: Region, width: usize, height: usize) -> Vec<u8> {
        let size = (self.width as u32, self.height as u32);
        let layout = Layout { channels: 3, has_alpha: false };
        let source = [region.x, region.y, region.width, region.height].map(|side| side as f64);
        resample(self.rgb, size, layout, source, (width as u32, height as u32), Filter::Bilinear)
            .expect("a region of the image")
    }
}
