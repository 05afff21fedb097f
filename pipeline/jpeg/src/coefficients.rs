//! The frequencies of a whole plane, for pictures that come in several passes.

use crate::{
    block::{Block, FREQUENCIES, NOWHERE, ZIGZAG, places},
    quantization::Quantization,
};

/// The lowest frequencies of each block, and of all of them whether they are zero: refining passes cannot be read without.
pub(crate) struct Coefficients {
    /// Blocks across.
    across: usize,
    /// For each frequency in the file's order, where it is in `kept`.
    slots: [u8; FREQUENCIES],
    /// How many are kept of a block.
    each: usize,
    kept: Vec<i16>,
    known: Vec<u64>,
}

/// One block of them.
pub(crate) struct Pending<'a> {
    slots: &'a [u8; FREQUENCIES],
    kept: &'a mut [i16],
    pub(crate) known: &'a mut u64,
}

impl Coefficients {
    /// Of blocks that become this many samples on a side.
    pub(crate) fn new(across: usize, down: usize, side: usize) -> Self {
        let mut next = 0;
        let slots = ZIGZAG.map(|(u, v)| {
            let is_kept = u < side && v < side;
            next += u8::from(is_kept);
            if is_kept { next - 1 } else { NOWHERE }
        });
        let (each, blocks) = (usize::from(next), across * down);
        Self { across, slots, each, kept: vec![0; blocks * each], known: vec![0; blocks] }
    }

    pub(crate) fn bytes_of_block(kept: u64) -> u64 {
        kept * size_of::<i16>() as u64 + size_of::<u64>() as u64
    }

    #[inline]
    pub(crate) fn block(&mut self, across: usize, down: usize) -> Option<Pending<'_>> {
        let at = down * self.across + across;
        let kept = self.kept.get_mut(at * self.each..(at + 1) * self.each)?;
        Some(Pending { slots: &self.slots, kept, known: self.known.get_mut(at)? })
    }

    /// All blocks row by row, as they are now.
    pub(crate) fn for_each(
        &self,
        side: usize,
        quantization: &Quantization,
        mut see: impl FnMut((usize, usize), &Block),
    ) {
        let places = places(side);
        let order: Vec<usize> = (0..FREQUENCIES).filter(|number| places[*number] != NOWHERE).collect();
        let mut block = Block::default();
        for (at, (kept, known)) in self.kept.chunks_exact(self.each).zip(&self.known).enumerate() {
            block.clear();
            let last = FREQUENCIES - 1 - (known | 1).leading_zeros() as usize;
            for (&number, &value) in order.iter().zip(kept).take_while(|(number, _)| **number <= last) {
                block.set(places[number].into(), number, value.wrapping_mul(quantization[number]));
            }
            see((at % self.across, at / self.across), &block);
        }
    }
}

impl Pending<'_> {
    /// The frequency with this number in the file's order, if it is kept.
    #[inline]
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut i16> {
        self.kept.get_mut(usize::from(self.slots[number % FREQUENCIES]))
    }

    #[inline]
    pub(crate) fn learn(&mut self, number: usize, value: i16) {
        *self.known |= 1 << (number % FREQUENCIES);
        if let Some(kept) = self.get(number) {
            *kept = value;
        }
    }
}
