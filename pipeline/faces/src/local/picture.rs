//! The pixels of a photo, and what is cut out of them.

use sparks_engine::Pixels;
use sparks_resize::{Filter, Layout, resample};

/// Upright RGB pixels: one byte a channel, at least one pixel.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    rgb: &'a [u8],
}

/// A part of a picture, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Left edge.
    pub x: usize,
    /// Upper edge.
    pub y: usize,
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
}

impl<'a> Picture<'a> {
    /// The picture, unless it is empty or has not the bytes it should have.
    pub fn of(pixels: &'a Pixels) -> Option<Self> {
        Self::new(pixels.width as usize, pixels.height as usize, &pixels.rgb)
    }

    /// The picture of these bytes.
    pub fn new(width: usize, height: usize, rgb: &'a [u8]) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == rgb.len()).then_some(Self { width, height, rgb })
    }

    /// All of it.
    pub fn whole(&self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// The three channels of a pixel; outside, those of the nearest pixel.
    pub fn at(&self, x: isize, y: isize) -> [u8; 3] {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        let at = (y * self.width + x) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// A part of it at another size: RGB bytes, each averaged over what it stands for.
    pub fn resized(&self, part: Region, width: usize, height: usize) -> Vec<u8> {
        let size = (self.width as u32, self.height as u32);
        let layout = Layout { channels: 3, alpha: false };
        let part = [part.x, part.y, part.width, part.height].map(|side| side as f64);
        resample(self.rgb, size, layout, part, (width as u32, height as u32), Filter::Bilinear)
            .expect("a part of the picture")
    }
}
