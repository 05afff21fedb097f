//! Rate-distortion scores of encoded candidates.

use wide::i16x8;

use crate::simd::{Blocks8, block_of};

/// Penalty, in 256ths of a bit, for a nearly flat block with a mode other than DC, which would cause visible artefacts.
pub(crate) const FLATNESS_PENALTY: i64 = 140;

/// The distortion (squared error) and the rate (256ths of a bit) of a candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RdScore {
    pub(crate) distortion: i64,
    /// Cost of the coefficients.
    pub(crate) bits: i64,
    /// Cost of the modes.
    pub(crate) header: i64,
}

impl RdScore {
    /// Returns the score `distortion + lambda * rate`, scaled by 256.
    pub(crate) fn weighted(self, lambda: i64) -> i64 {
        (self.bits + self.header) * lambda + 256 * self.distortion
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.distortion += other.distortion;
        self.bits += other.bits;
        self.header += other.header;
    }
}

/// The quantized coefficients of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuantizedBlock {
    pub(crate) levels: [i16; 16],
    /// One more than the zigzag index of the last nonzero level.
    pub(crate) coded: usize,
}

/// Returns the two modes with the smallest distances.
pub(crate) fn nearest_two(distances: [i32; 4]) -> [usize; 2] {
    let mut modes = [0, 1, 2, 3];
    modes.sort_unstable_by_key(|mode| distances[*mode]);
    [modes[0], modes[1]]
}

/// Extracts all eight blocks.
pub(crate) fn all_blocks(levels: &Blocks8, coded: i16x8) -> [QuantizedBlock; 8] {
    let coded = coded.to_array();
    std::array::from_fn(|n| QuantizedBlock { levels: block_of(levels, n), coded: coded[n] as usize })
}
