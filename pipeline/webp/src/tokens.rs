//! Coefficients as the standard's tokens: kept until it is known how likely each is, then written.

use crate::{
    BANDS, ZIGZAG,
    bits::Bits,
    cost::{FIXED, level_branches, low_bits},
    standard::{TOKENS, TOKENS_CHANGE},
};

/// How likely each branch of a token is.
#[derive(Debug, Clone)]
pub(crate) struct Likelihoods([u8; 1056]);

fn index(kind: usize, band: usize, context: usize) -> usize {
    (kind * 8 + band) * 33 + context * 11
}

impl Likelihoods {
    pub(crate) fn standard() -> Self {
        Self(TOKENS)
    }

    pub(crate) fn branches(&self, kind: usize, band: usize, context: usize) -> &[u8] {
        &self.0[index(kind, band, context)..][..11]
    }

    /// Writes what differs from the standard.
    pub(crate) fn write(&self, bits: &mut Bits) {
        for n in 0..1056 {
            let differs = self.0[n] != TOKENS[n];
            bits.put(differs, TOKENS_CHANGE[n]);
            if differs {
                bits.number(self.0[n].into(), 8);
            }
        }
    }
}

/// The branches taken, in order.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// The way in the highest bit; then which likelihood, or a fixed one.
    taken: Vec<u16>,
    /// How often each branch was met, and how often it was taken.
    met: Vec<[u32; 2]>,
}

const TAKEN: u16 = 1 << 15;
const FIXED_LIKELIHOOD: u16 = 1 << 14;
/// Sixteen coefficients of nineteen branches each, and the first.
const MOST_OF_BLOCK: usize = 16 * 19 + 1;

impl Tokens {
    pub(crate) fn new(expected: usize) -> Self {
        Self { taken: Vec::with_capacity(expected), met: vec![[0; 2]; 1056] }
    }

    #[inline]
    fn branch(&mut self, at: usize, way: bool) -> bool {
        let met = &mut self.met[at];
        met[0] += 1;
        met[1] += u32::from(way);
        self.taken.push(at as u16 | if way { TAKEN } else { 0 });
        way
    }

    /// Grows by a quarter at a time: twice what is needed would be most of what a picture takes.
    #[inline]
    fn make_room(&mut self) {
        if self.taken.capacity() - self.taken.len() < MOST_OF_BLOCK {
            self.taken.reserve_exact(self.taken.len() / 4 + MOST_OF_BLOCK);
        }
    }

    /// One block; `coded` as in [`crate::lanes::coded`].
    pub(crate) fn block(&mut self, kind: usize, first: usize, context: usize, levels: &[i16; 16], coded: usize) {
        self.make_room();
        let mut at = index(kind, BANDS[first], context);
        if !self.branch(at, coded > first) {
            return;
        }
        for place in first..coded {
            let level = levels[ZIGZAG[place]];
            let size = usize::from(level.unsigned_abs());
            let following = |context| index(kind, BANDS[place + 1], context);
            if !self.branch(at + 1, size > 0) {
                at = following(0);
                continue;
            }
            for (branch, way) in level_branches(size) {
                self.branch(at + branch, *way);
            }
            if size > 4 {
                let count = low_bits(size).count() - 1;
                for (bit, likelihood) in low_bits(size).take(count) {
                    self.taken.push(FIXED_LIKELIHOOD | u16::from(likelihood) | if bit { TAKEN } else { 0 });
                }
            }
            self.taken.push(FIXED_LIKELIHOOD | 128 | if level < 0 { TAKEN } else { 0 });
            at = following(size.min(2));
            if place < 15 {
                self.branch(at, place + 1 < coded);
            }
        }
    }

    /// By what was met so far; a branch that would save less than telling its likelihood costs keeps the standard's.
    pub(crate) fn likelihoods(&self) -> Likelihoods {
        let mut likelihoods = TOKENS;
        for (n, [met, taken]) in self.met.iter().enumerate() {
            if *met == 0 {
                continue;
            }
            let seen = if *taken > 0 { 255 - (u64::from(*taken) * 255 / u64::from(*met)) as u8 } else { 255 };
            let cost = |p: u8| {
                let [one, zero] = [true, false].map(|bit| u64::from(FIXED.bit(bit, p)));
                u64::from(*taken) * one + u64::from(met - taken) * zero
            };
            let change = |bit| u64::from(FIXED.bit(bit, TOKENS_CHANGE[n]));
            if cost(TOKENS[n]) + change(false) > cost(seen) + change(true) + 8 * 256 {
                likelihoods[n] = seen;
            }
        }
        Likelihoods(likelihoods)
    }

    pub(crate) fn write(&self, likelihoods: &Likelihoods) -> Vec<u8> {
        let mut bits = Bits::new(self.taken.len() / 8);
        for token in &self.taken {
            let way = token & TAKEN != 0;
            let likelihood = if token & FIXED_LIKELIHOOD != 0 {
                *token as u8
            } else {
                likelihoods.0[usize::from(token & (FIXED_LIKELIHOOD - 1))]
            };
            bits.put(way, likelihood);
        }
        bits.finish()
    }
}
