//! The DCT coefficients of a block of 8 x 8 samples.

use wide::i16x8;

use crate::idct::{SIDE, position};

/// Coefficients per block.
pub(crate) const BLOCK_SIZE: usize = SIDE * SIDE;
/// The position of coefficients that are not stored.
pub(crate) const DISCARDED: u8 = BLOCK_SIZE as u8;
/// The last coefficient in zigzag order up to which all are in the lower half, horizontally and vertically.
const LAST_LOW: usize = 9;

/// The zigzag order of coefficients (T.81 figure A.6), as horizontal and vertical frequency.
pub(crate) const ZIGZAG: [(usize, usize); BLOCK_SIZE] = zigzag();

const fn zigzag() -> [(usize, usize); BLOCK_SIZE] {
    let mut order = [(0, 0); BLOCK_SIZE];
    let (mut at, mut diagonal) = (0, 0);
    while at < BLOCK_SIZE {
        let mut step = 0;
        while step <= diagonal {
            let (u, v) = if diagonal % 2 == 0 { (step, diagonal - step) } else { (diagonal - step, step) };
            if u < SIDE && v < SIDE {
                order[at] = (u, v);
                at += 1;
            }
            step += 1;
        }
        diagonal += 1;
    }
    order
}

/// Returns the position in a [`Block`] of each coefficient in zigzag order, if only the lowest `side * side` are stored.
pub(crate) fn positions(side: usize) -> [u8; BLOCK_SIZE] {
    ZIGZAG.map(|(u, v)| if u < side && v < side { position(u, v) as u8 } else { DISCARDED })
}

/// Dequantized coefficients in the SIMD layout of [`position`].
pub(crate) struct Block {
    /// Twice the block size, so that discarded coefficients need no branch.
    coefficients: [i16; 2 * BLOCK_SIZE],
    /// The last nonzero coefficient in zigzag order.
    last: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { coefficients: [0; 2 * BLOCK_SIZE], last: 0 }
    }
}

impl Block {
    pub(crate) fn clear(&mut self) {
        self.coefficients[..BLOCK_SIZE].fill(0);
        self.last = 0;
    }

    /// Stores the coefficient with this number in zigzag order.
    #[inline(always)]
    pub(crate) fn set(&mut self, position: usize, number: usize, value: i16) {
        self.coefficients[position % (2 * BLOCK_SIZE)] = value;
        self.last = number;
    }

    #[inline(always)]
    pub(crate) fn dc(&self) -> i16 {
        self.coefficients[0]
    }

    #[inline(always)]
    pub(crate) fn is_dc_only(&self) -> bool {
        self.last == 0
    }

    #[inline(always)]
    pub(crate) fn is_low(&self) -> bool {
        self.last <= LAST_LOW
    }

    /// Returns the coefficients of the lower and the upper vertical frequencies, each as four vectors of four pairs.
    #[inline(always)]
    pub(crate) fn halves(&self) -> [[i16x8; 4]; 2] {
        let four = |n: usize| i16x8::from_slice_unaligned(&self.coefficients[n * SIDE..][..SIDE]);
        [[four(0), four(2), four(4), four(6)], [four(1), four(3), four(5), four(7)]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zigzag_follows_the_diagonals() {
        assert_eq!(ZIGZAG[..6], [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (2, 0)]);
        assert_eq!(ZIGZAG[62..], [(6, 7), (7, 7)]);
        assert!(ZIGZAG[..=LAST_LOW].iter().all(|(u, v)| *u < 4 && *v < 4));
    }

    #[test]
    fn every_coefficient_has_its_own_position() {
        let mut positions = positions(SIDE);
        positions.sort_unstable();
        assert!(positions.iter().copied().eq(0..BLOCK_SIZE as u8));
    }

    #[test]
    fn discarded_coefficients_are_not_stored() {
        let positions = positions(3);
        assert_eq!(positions.iter().filter(|position| **position != DISCARDED).count(), 9);
        let mut block = Block::default();
        block.set(positions[63].into(), 63, 7);
        assert!(block.halves().iter().flatten().all(|pairs| *pairs == i16x8::ZERO));
    }
}
