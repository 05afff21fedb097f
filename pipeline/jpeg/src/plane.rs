//! One colour of a picture.

use crate::{
    Frame,
    frame::Component,
    transform::{SIDE, Samples},
};

/// Samples row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    /// Samples across.
    pub width: usize,
    /// Samples down.
    pub height: usize,
    /// `width * height` of them.
    pub samples: Vec<u8>,
    /// Samples for each pixel of the whole picture, across and down. The size is that of the picture so scaled, rounded up.
    pub scale: [f64; 2],
}

impl Plane {
    /// Of a picture in so many eighths of its size. Its samples are neither light nor dark.
    pub(crate) fn of_frame(frame: &Frame, component: &Component, eighths: usize) -> Self {
        let [width, height] = frame.samples(component).map(|samples| (samples * eighths).div_ceil(SIDE));
        let scale = frame.sampling(component).map(|share| share * eighths as f64 / SIDE as f64);
        Self { width, height, samples: vec![128; width * height], scale }
    }

    /// Puts down the samples of a block of this side, as far as they are within the plane. What is right of it is its next
    /// neighbour's, and may be anything until that comes.
    #[inline]
    pub(crate) fn put(&mut self, (across, down): (usize, usize), side: usize, samples: &Samples) {
        let (left, top) = (across * side, down * side);
        let width = self.width.saturating_sub(left).min(side);
        let height = self.height.saturating_sub(top).min(side);
        // Always as many, where there is room: copying any other number takes longer.
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
    fn blocks_are_cut_at_the_edges() {
        let mut plane = Plane { width: 5, height: 4, samples: vec![128; 20], scale: [1.0; 2] };
        plane.put((1, 1), 3, &[[7; SIDE]; SIDE]);
        assert_eq!(plane.samples[..15], [128; 15]);
        assert_eq!(plane.samples[15..], [128, 128, 128, 7, 7]);
        for outside in [(9, 9), (9, 1), (1, 9), (2, 1)] {
            plane.put(outside, 3, &[[9; SIDE]; SIDE]);
        }
        assert!(!plane.samples.contains(&9));
    }
}
