//! From frequencies to samples: the inverse cosine transform of 8 x 8 frequencies to fewer samples, by their lowest ones.
//!
//! Frequencies lie in memory as the instructions want them that multiply pairs and add them up, so that nothing has to be
//! brought into order before. Even and odd frequencies are apart: the right half of what they add up to is the left half
//! mirrored, with the odd ones' signs changed.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use wide::{bytemuck::cast, i16x8, i32x4, i32x8, u8x16, u32x4};

use crate::block::Block;

/// Frequencies, and samples at most, on a block's side.
pub(crate) const SIDE: usize = 8;

/// The order of frequencies, by pairs: even ones and odd ones of the lower half, even ones and odd ones of the upper.
const ORDER: [usize; SIDE] = [0, 2, 1, 3, 4, 6, 5, 7];
/// Bits of fraction of the waves, and of the samples half done.
const WAVE_BITS: i32 = 15;
const HALF_DONE_BITS: i32 = 4;
/// What samples are stored without.
const MIDDLE: i32 = 128;

/// Where a frequency lies in a block.
pub(crate) fn place(across: usize, down: usize) -> usize {
    let rank = |frequency: usize| ORDER.iter().position(|other| *other == frequency).unwrap_or_default();
    let (across, down) = (rank(across), rank(down));
    across / 2 * 16 + down * 2 + across % 2
}

/// Makes samples of blocks, a number of them on each side that stays the same.
pub(crate) struct Transform {
    side: usize,
    /// For each sample of the left half, how much of each pair of frequencies is in it.
    waves: Waves,
    make: fn(&Waves, &Block) -> Samples,
    make_of_low: fn(&Waves, &Block) -> Samples,
}

type Waves = [[i16x8; 4]; SIDE / 2];

/// Row by row, of which the first few are used, as of each.
pub(crate) type Samples = [[u8; SIDE]; SIDE];

impl Transform {
    /// To this many samples on a side, 1 to 8.
    pub(crate) fn new(side: usize) -> Self {
        let wave = |sample: usize, frequency: usize| {
            let share = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 };
            let angle = (2 * sample + 1) as f64 * frequency as f64 * PI / (2 * side) as f64;
            let height = if frequency < side { share * angle.cos() / 2.0 } else { 0.0 };
            (height * f64::from(1 << WAVE_BITS)).round() as i16
        };
        let mut waves = [[i16x8::ZERO; 4]; SIDE / 2];
        for (sample, pairs) in waves.iter_mut().enumerate().take(side.div_ceil(2)) {
            for (pair, frequencies) in pairs.iter_mut().zip(ORDER.chunks_exact(2)) {
                let [one, other] = [wave(sample, frequencies[0]), wave(sample, frequencies[1])];
                *pair = i16x8::new([one, other, one, other, one, other, one, other]);
            }
        }
        let (make, make_of_low): (fn(&_, &_) -> _, fn(&_, &_) -> _) = match side {
            1 => (make::<1, true>, make::<1, true>),
            2 => (make::<2, true>, make::<2, true>),
            3 => (make::<3, true>, make::<3, true>),
            4 => (make::<4, true>, make::<4, true>),
            5 => (make::<5, false>, make::<5, true>),
            6 => (make::<6, false>, make::<6, true>),
            7 => (make::<7, false>, make::<7, true>),
            _ => (make::<8, false>, make::<8, true>),
        };
        Self { side, waves, make, make_of_low }
    }

    pub(crate) fn side(&self) -> usize {
        self.side
    }

    /// The samples of a block.
    #[inline]
    pub(crate) fn samples(&self, block: &Block) -> Samples {
        if block.is_flat() || self.side == 1 {
            // Both waves are half of one over the square root of two.
            let sample = ((i32::from(block.mean()) + 4) >> 3) + MIDDLE;
            [[sample.clamp(0, 255) as u8; SIDE]; SIDE]
        } else if block.is_low() {
            (self.make_of_low)(&self.waves, block)
        } else {
            (self.make)(&self.waves, block)
        }
    }
}

/// `LOW` where all frequencies from the fifth on are zero.
fn make<const SAMPLES: usize, const LOW: bool>(waves: &Waves, block: &Block) -> Samples {
    let [low, high] = block.halves();
    let mut columns = [u32x4::ZERO; SIDE];
    for at in 0..SAMPLES.div_ceil(2) {
        let (left_low, right_low) = add_up::<LOW>(&low, &waves[at]);
        let (left_high, right_high) = if LOW { Default::default() } else { add_up::<LOW>(&high, &waves[at]) };
        columns[at] = half_done(left_low, left_high);
        columns[SAMPLES - 1 - at] = half_done(right_low, right_high);
    }
    let [a, b, c, d, e, f, g, h] = columns;
    let (left, right) = (turned([a, b, c, d]), turned([e, f, g, h]));
    let mut samples = [[0; SIDE]; SIDE];
    for at in 0..SAMPLES.div_ceil(2) {
        let (top_left, bottom_left) = add_up::<LOW>(&left, &waves[at]);
        let (top_right, bottom_right) =
            if SAMPLES > 4 { add_up::<LOW>(&right, &waves[at]) } else { Default::default() };
        samples[at] = row(top_left, top_right);
        samples[SAMPLES - 1 - at] = row(bottom_left, bottom_right);
    }
    samples
}

/// Of pairs of frequencies: the sample, and the one as far from the other end.
#[inline(always)]
fn add_up<const LOW: bool>(pairs: &[i16x8; 4], waves: &[i16x8; 4]) -> (i32x4, i32x4) {
    let (mut even, mut odd) = (pairs[0].dot(waves[0]), pairs[1].dot(waves[1]));
    if !LOW {
        even += pairs[2].dot(waves[2]);
        odd += pairs[3].dot(waves[3]);
    }
    (even + odd, even - odd)
}

/// Frequencies down of one sample across, in pairs again.
#[inline(always)]
fn half_done(low: i32x4, high: i32x4) -> u32x4 {
    const SHIFT: i32 = WAVE_BITS - HALF_DONE_BITS;
    let round = |sum: i32x4| (sum + i32x4::splat(1 << (SHIFT - 1))) >> SHIFT;
    cast(i16x8::from_i32x8_saturate(cast::<[i32x4; 2], i32x8>([round(low), round(high)])))
}

/// Of four columns: each pair of frequencies of all of them.
#[inline(always)]
fn turned(columns: [u32x4; 4]) -> [i16x8; 4] {
    let [a, b, c, d] = u32x4::transpose(columns);
    [cast(a), cast(b), cast(c), cast(d)]
}

#[inline(always)]
fn row(left: i32x4, right: i32x4) -> [u8; SIDE] {
    const SHIFT: i32 = WAVE_BITS + HALF_DONE_BITS;
    let round = |sum: i32x4| (sum + i32x4::splat((MIDDLE << SHIFT) + (1 << (SHIFT - 1)))) >> SHIFT;
    let row = i16x8::from_i32x8_saturate(cast::<[i32x4; 2], i32x8>([round(left), round(right)]));
    let [row, _] = cast::<u8x16, [[u8; SIDE]; 2]>(u8x16::narrow_i16x8(row, row));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ZIGZAG;

    /// By the book, in floating point, of frequencies by (across, down).
    fn by_the_book(side: usize, frequencies: &[[f64; SIDE]; SIDE]) -> Vec<Vec<f64>> {
        let wave = |at: usize, frequency: usize| {
            let share = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 };
            share * ((2 * at + 1) as f64 * frequency as f64 * PI / (2 * side) as f64).cos() / 2.0
        };
        let sample = |x: usize, y: usize| {
            let all = (0..side).flat_map(|across| (0..side).map(move |down| (across, down)));
            let sum: f64 = all.map(|(u, v)| frequencies[u][v] * wave(x, u) * wave(y, v)).sum();
            (sum + 128.0).clamp(0.0, 255.0)
        };
        (0..side).map(|y| (0..side).map(|x| sample(x, y)).collect()).collect()
    }

    #[test]
    fn samples_are_those_of_the_book() {
        let mut random = fastrand::Rng::with_seed(1);
        for side in 1..=SIDE {
            let transform = Transform::new(side);
            for coded in (0..200).flat_map(|_| [1, 2, 6, 10, 11, 64]) {
                let mut frequencies = [[0.0; SIDE]; SIDE];
                let mut block = Block::default();
                for (at, (across, down)) in ZIGZAG.into_iter().enumerate().take(coded) {
                    let value = random.i16(-600..600) / (1 + at as i16);
                    frequencies[across][down] = value.into();
                    if across < side && down < side {
                        block.set(place(across, down), at, value);
                    }
                }
                let samples = transform.samples(&block);
                for (row, expected) in samples.iter().zip(by_the_book(side, &frequencies)) {
                    for (sample, expected) in row.iter().zip(expected) {
                        assert!((f64::from(*sample) - expected).abs() < 0.6, "{side}: {sample} is not {expected}");
                    }
                }
            }
        }
    }
}
