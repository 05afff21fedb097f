//! The DCT coefficients of a component, collected over the scans of a progressive image.

use crate::{
    block::{BLOCK_SIZE, Block, DISCARDED, ZIGZAG, positions},
    quantization::QuantizationTable,
};

/// The coefficients of all blocks of one component. Only the lowest are stored, as the scaled IDCT needs no others; of all 64 it is
/// known whether they are nonzero, because refinement scans cannot be parsed without.
pub(crate) struct Coefficients {
    /// Blocks per row.
    columns: usize,
    /// For each coefficient in zigzag order, its index among the stored ones.
    slots: [u8; BLOCK_SIZE],
    /// Stored coefficients per block.
    per_block: usize,
    values: Vec<i16>,
    /// One bit mask per block.
    nonzero: Vec<u64>,
}

/// The coefficients of one block.
pub(crate) struct CoefficientBlock<'a> {
    slots: &'a [u8; BLOCK_SIZE],
    values: &'a mut [i16],
    pub(crate) nonzero: &'a mut u64,
}

impl Coefficients {
    /// Allocates the coefficients for blocks that are transformed to `side * side` samples.
    pub(crate) fn new(columns: usize, rows: usize, side: usize) -> Self {
        let mut next = 0;
        let slots = ZIGZAG.map(|(u, v)| {
            let is_stored = u < side && v < side;
            next += u8::from(is_stored);
            if is_stored { next - 1 } else { DISCARDED }
        });
        let (per_block, blocks) = (usize::from(next), columns * rows);
        Self { columns, slots, per_block, values: vec![0; blocks * per_block], nonzero: vec![0; blocks] }
    }

    /// Returns the bytes of a block with this many stored coefficients.
    pub(crate) fn block_bytes(stored: u64) -> u64 {
        stored * size_of::<i16>() as u64 + size_of::<u64>() as u64
    }

    #[inline]
    pub(crate) fn block(&mut self, column: usize, row: usize) -> Option<CoefficientBlock<'_>> {
        let at = row * self.columns + column;
        let values = self.values.get_mut(at * self.per_block..(at + 1) * self.per_block)?;
        Some(CoefficientBlock { slots: &self.slots, values, nonzero: self.nonzero.get_mut(at)? })
    }

    /// Dequantizes all blocks row by row and passes each to `visit` with its column and row.
    pub(crate) fn for_each(
        &self,
        side: usize,
        quantization: &QuantizationTable,
        mut visit: impl FnMut((usize, usize), &Block),
    ) {
        let positions = positions(side);
        let order: Vec<usize> = (0..BLOCK_SIZE).filter(|number| positions[*number] != DISCARDED).collect();
        let mut block = Block::default();
        for (at, (values, nonzero)) in self.values.chunks_exact(self.per_block).zip(&self.nonzero).enumerate() {
            block.clear();
            let last = BLOCK_SIZE - 1 - (nonzero | 1).leading_zeros() as usize;
            for (&number, &value) in order.iter().zip(values).take_while(|(number, _)| **number <= last) {
                block.set(positions[number].into(), number, value.wrapping_mul(quantization[number]));
            }
            visit((at % self.columns, at / self.columns), &block);
        }
    }
}

impl CoefficientBlock<'_> {
    /// Returns the coefficient with this number in zigzag order, if it is stored.
    #[inline]
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut i16> {
        self.values.get_mut(usize::from(self.slots[number % BLOCK_SIZE]))
    }

    #[inline]
    pub(crate) fn set(&mut self, number: usize, value: i16) {
        *self.nonzero |= 1 << (number % BLOCK_SIZE);
        if let Some(stored) = self.get(number) {
            *stored = value;
        }
    }
}
