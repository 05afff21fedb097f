//! The frequencies of 8 x 8 samples.

use wide::i16x8;

use crate::transform::{SIDE, place};

/// How many frequencies a block has.
pub(crate) const FREQUENCIES: usize = SIDE * SIDE;
/// Where frequencies go that are not kept.
pub(crate) const NOWHERE: u8 = FREQUENCIES as u8;
/// All frequencies up to this one are of the lower half, across and down.
const LAST_LOW: usize = 9;

/// The order of frequencies in a file: across and down.
pub(crate) const ZIGZAG: [(usize, usize); FREQUENCIES] = zigzag();

const fn zigzag() -> [(usize, usize); FREQUENCIES] {
    let mut order = [(0, 0); FREQUENCIES];
    let (mut at, mut diagonal) = (0, 0);
    while at < FREQUENCIES {
        let mut step = 0;
        while step <= diagonal {
            let (across, down) = if diagonal % 2 == 0 { (step, diagonal - step) } else { (diagonal - step, step) };
            if across < SIDE && down < SIDE {
                order[at] = (across, down);
                at += 1;
            }
            step += 1;
        }
        diagonal += 1;
    }
    order
}

/// For each frequency in the file's order, where it lies in a block of which only the lowest are kept.
pub(crate) fn places(side: usize) -> [u8; FREQUENCIES] {
    ZIGZAG.map(|(across, down)| if across < side && down < side { place(across, down) as u8 } else { NOWHERE })
}

/// Frequencies where [`place`] puts them.
pub(crate) struct Block {
    /// Twice as many as there are, so that no place needs to be looked at before something is put there.
    frequencies: [i16; 2 * FREQUENCIES],
    /// The last one that is not zero, in the file's order.
    last: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { frequencies: [0; 2 * FREQUENCIES], last: 0 }
    }
}

impl Block {
    pub(crate) fn clear(&mut self) {
        self.frequencies[..FREQUENCIES].fill(0);
        self.last = 0;
    }

    /// Puts the frequency with this number in the file's order in its place.
    #[inline(always)]
    pub(crate) fn set(&mut self, place: usize, number: usize, value: i16) {
        self.frequencies[place % (2 * FREQUENCIES)] = value;
        self.last = number;
    }

    #[inline(always)]
    pub(crate) fn mean(&self) -> i16 {
        self.frequencies[0]
    }

    #[inline(always)]
    pub(crate) fn is_flat(&self) -> bool {
        self.last == 0
    }

    #[inline(always)]
    pub(crate) fn is_low(&self) -> bool {
        self.last <= LAST_LOW
    }

    /// The lower and the upper frequencies down, each as four vectors of four pairs.
    #[inline(always)]
    pub(crate) fn halves(&self) -> [[i16x8; 4]; 2] {
        let four = |n: usize| i16x8::from_slice_unaligned(&self.frequencies[n * SIDE..][..SIDE]);
        [[four(0), four(2), four(4), four(6)], [four(1), four(3), four(5), four(7)]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_come_in_diagonals() {
        assert_eq!(ZIGZAG[..6], [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (2, 0)]);
        assert_eq!(ZIGZAG[62..], [(6, 7), (7, 7)]);
        assert!(ZIGZAG[..=LAST_LOW].iter().all(|(across, down)| *across < 4 && *down < 4));
    }

    #[test]
    fn every_frequency_has_a_place_of_its_own() {
        let mut places = places(SIDE);
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..FREQUENCIES as u8));
    }

    #[test]
    fn what_is_not_kept_goes_nowhere() {
        let places = places(3);
        assert_eq!(places.iter().filter(|place| **place != NOWHERE).count(), 9);
        let mut block = Block::default();
        block.set(places[63].into(), 63, 7);
        assert!(block.halves().iter().flatten().all(|pairs| *pairs == i16x8::ZERO));
    }
}
