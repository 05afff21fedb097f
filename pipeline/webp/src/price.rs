//! What a way of coding costs, and what it leaves to be written.

use wide::i16x8;

use crate::lanes::{Lanes, block_of};

/// A bit or so for every block that is nearly flat and yet guessed in a complicated way.
pub(crate) const FLATNESS_PENALTY: i64 = 140;

/// What is being weighed: all in the same unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Price {
    pub(crate) error: i64,
    pub(crate) bits: i64,
    pub(crate) header: i64,
}

impl Price {
    pub(crate) fn at(self, per_bit: i64) -> i64 {
        (self.bits + self.header) * per_bit + 256 * self.error
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.error += other.error;
        self.bits += other.bits;
        self.header += other.header;
    }
}

/// Levels of a block and how many of them are coded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Levels {
    pub(crate) levels: [i16; 16],
    pub(crate) coded: usize,
}

/// The two modes that are not so far off as the others.
pub(crate) fn nearest_two(far: [i32; 4]) -> [usize; 2] {
    let mut modes = [0, 1, 2, 3];
    modes.sort_unstable_by_key(|mode| far[*mode]);
    [modes[0], modes[1]]
}

/// Each of eight blocks.
pub(crate) fn all_blocks(levels: &Lanes, coded: i16x8) -> [Levels; 8] {
    let coded = coded.to_array();
    std::array::from_fn(|n| Levels { levels: block_of(levels, n), coded: coded[n] as usize })
}
