//! A decoded plane: the samples of one component.

use crate::{
    FrameHeader,
    frame::Component,
    idct::{SIDE, Samples},
};

/// Samples of one component, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    /// Width in samples.
    pub width: usize,
    /// Height in samples.
    pub height: usize,
    /// `width * height` samples.
    pub samples: Vec<u8>,
    /// Samples per pixel of the full-size image, horizontally and vertically. The plane's size is the image's size times this,
    /// rounded up.
    pub scale: [f64; 2],
}

impl Plane {
    /// Creates a mid-grey plane for `scale_num / 8` of the full size.
    pub(crate) fn new(frame: &FrameHeader, component: &Component, scale_num: usize) -> Self {
        let [width, height] = frame.component_size(component).map(|samples| (samples * scale_num).div_ceil(SIDE));
        let scale = frame.sampling_ratio(component).map(|ratio| ratio * scale_num as f64 / SIDE as f64);
        Self { width, height, samples: vec![128; width * height], scale }
    }

    /// Stores the samples of a block of this side, clipped to the plane. Samples to the right of the block belong to the next one
    /// and may be overwritten until it is stored.
    #[inline]
    pub(crate) fn put_block(&mut self, (column, row): (usize, usize), side: usize, samples: &Samples) {
        let (left, top) = (column * side, row * side);
        let width = self.width.saturating_sub(left).min(side);
        let height = self.height.saturating_sub(top).min(side);
        // A constant number where there is room: copying a variable one is slower.
        let copied = if left + SIDE <= self.width { SIDE } else { width };
        if width == 0 || height == 0 {
            return;
        }
        let rows = self.samples[top * self.width + left..].chunks_mut(self.width);
        for (row, samples) in rows.zip(samples).take(height) {
            if copied == SIDE {
                row[..SIDE].copy_from_slice(samples);
            } else {
                row[..copied].copy_from_slice(&samples[..copied]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_clipped_at_the_edges() {
        let mut plane = Plane { width: 5, height: 4, samples: vec![128; 20], scale: [1.0; 2] };
        plane.put_block((1, 1), 3, &[[7; SIDE]; SIDE]);
        assert_eq!(plane.samples[..15], [128; 15]);
        assert_eq!(plane.samples[15..], [128, 128, 128, 7, 7]);
        for outside in [(9, 9), (9, 1), (1, 9), (2, 1)] {
            plane.put_block(outside, 3, &[[9; SIDE]; SIDE]);
        }
        assert!(!plane.samples.contains(&9));
    }
}
