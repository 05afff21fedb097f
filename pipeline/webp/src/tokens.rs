//! Coefficient tokens (RFC 6386, section 13): collected until their probabilities are known, then written.

use crate::{
    BANDS, ZIGZAG,
    bit_cost::{FIXED_COSTS, extra_bits, level_branches},
    bool_encoder::BoolEncoder,
    tables::{DEFAULT_TOKEN_PROBABILITIES, TOKEN_UPDATE_PROBABILITIES},
};

/// The probability of each branch of the token tree.
#[derive(Debug, Clone)]
pub(crate) struct Probabilities([u8; 1056]);

fn index(kind: usize, band: usize, context: usize) -> usize {
    (kind * 8 + band) * 33 + context * 11
}

impl Probabilities {
    pub(crate) fn default_table() -> Self {
        Self(DEFAULT_TOKEN_PROBABILITIES)
    }

    pub(crate) fn branches(&self, kind: usize, band: usize, context: usize) -> &[u8] {
        &self.0[index(kind, band, context)..][..11]
    }

    /// Writes the probabilities that differ from the defaults.
    pub(crate) fn write(&self, bits: &mut BoolEncoder) {
        for n in 0..1056 {
            let differs = self.0[n] != DEFAULT_TOKEN_PROBABILITIES[n];
            bits.put(differs, TOKEN_UPDATE_PROBABILITIES[n]);
            if differs {
                bits.put_literal(self.0[n].into(), 8);
            }
        }
    }
}

/// The branches of all tokens, in order.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// The direction in the highest bit; then the index of its probability, or a fixed probability.
    branches: Vec<u16>,
    /// How often each branch occurred, and how often it was taken.
    counts: Vec<[u32; 2]>,
}

const TAKEN: u16 = 1 << 15;
const FIXED_PROBABILITY: u16 = 1 << 14;
/// The most branches of a block: sixteen coefficients of nineteen each, and the first.
const MAX_PER_BLOCK: usize = 16 * 19 + 1;

impl Tokens {
    pub(crate) fn new(expected: usize) -> Self {
        Self { branches: Vec::with_capacity(expected), counts: vec![[0; 2]; 1056] }
    }

    #[inline]
    fn put_branch(&mut self, at: usize, is_taken: bool) -> bool {
        let count = &mut self.counts[at];
        count[0] += 1;
        count[1] += u32::from(is_taken);
        self.branches.push(at as u16 | if is_taken { TAKEN } else { 0 });
        is_taken
    }

    /// Grows by a quarter at a time: doubling would take most of an image's memory.
    #[inline]
    fn reserve(&mut self) {
        if self.branches.capacity() - self.branches.len() < MAX_PER_BLOCK {
            self.branches.reserve_exact(self.branches.len() / 4 + MAX_PER_BLOCK);
        }
    }

    /// Adds a block; `coded` as in [`crate::simd::NonzeroCounts`].
    pub(crate) fn put_block(&mut self, kind: usize, first: usize, context: usize, levels: &[i16; 16], coded: usize) {
        self.reserve();
        let mut at = index(kind, BANDS[first], context);
        if !self.put_branch(at, coded > first) {
            return;
        }
        for n in first..coded {
            let level = levels[ZIGZAG[n]];
            let size = usize::from(level.unsigned_abs());
            let following = |context| index(kind, BANDS[n + 1], context);
            if !self.put_branch(at + 1, size > 0) {
                at = following(0);
                continue;
            }
            for (branch, is_taken) in level_branches(size) {
                self.put_branch(at + branch, *is_taken);
            }
            if size > 4 {
                let count = extra_bits(size).count() - 1;
                for (bit, probability) in extra_bits(size).take(count) {
                    self.branches.push(FIXED_PROBABILITY | u16::from(probability) | if bit { TAKEN } else { 0 });
                }
            }
            self.branches.push(FIXED_PROBABILITY | 128 | if level < 0 { TAKEN } else { 0 });
            at = following(size.min(2));
            if n < 15 {
                self.put_branch(at, n + 1 < coded);
            }
        }
    }

    /// Returns the probabilities of the blocks so far. A default is rend only where that saves more than its update costs.
    pub(crate) fn probabilities(&self) -> Probabilities {
        let mut probabilities = DEFAULT_TOKEN_PROBABILITIES;
        for (n, [total, taken]) in self.counts.iter().enumerate() {
            if *total == 0 {
                continue;
            }
            let observed = if *taken > 0 { 255 - (u64::from(*taken) * 255 / u64::from(*total)) as u8 } else { 255 };
            let cost = |p: u8| {
                let [one, zero] = [true, false].map(|bit| u64::from(FIXED_COSTS.bit(bit, p)));
                u64::from(*taken) * one + u64::from(total - taken) * zero
            };
            let update = |bit| u64::from(FIXED_COSTS.bit(bit, TOKEN_UPDATE_PROBABILITIES[n]));
            if cost(DEFAULT_TOKEN_PROBABILITIES[n]) + update(false) > cost(observed) + update(true) + 8 * 256 {
                probabilities[n] = observed;
            }
        }
        Probabilities(probabilities)
    }

    pub(crate) fn write(&self, probabilities: &Probabilities) -> Vec<u8> {
        let mut bits = BoolEncoder::new(self.branches.len() / 8);
        for token in &self.branches {
            let is_taken = token & TAKEN != 0;
            let probability = if token & FIXED_PROBABILITY != 0 {
                *token as u8
            } else {
                probabilities.0[usize::from(token & (FIXED_PROBABILITY - 1))]
            };
            bits.put(is_taken, probability);
        }
        bits.finish()
    }
}
