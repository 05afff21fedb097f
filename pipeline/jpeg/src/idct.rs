//! Inverse DCT of 8 x 8 coefficients to `side * side` samples, from the lowest `side * side` coefficients (scaled IDCT).
//!
//! Coefficients are stored in the order of the SIMD instructions that multiply pairs and add the products, so that nothing is
//! shuffled. Even and odd frequencies are separate: the right half of the output is the left half mirrored, with the sign of
//! the odd frequencies changed.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use wide::{bytemuck::cast, i16x8, i32x4, i32x8, u8x16, u32x4};

use crate::block::Block;

/// Coefficients, and at most samples, on a block's side.
pub(crate) const SIDE: usize = 8;

/// The order of frequencies, by pairs: even and odd ones of the lower half, even and odd ones of the upper half.
const ORDER: [usize; SIDE] = [0, 2, 1, 3, 4, 6, 5, 7];
/// Fraction bits of the cosines, and of the samples between both passes.
const COSINE_BITS: i32 = 15;
const INTERMEDIATE_BITS: i32 = 4;
/// Samples are stored with this offset subtracted (level shift, T.81 A.3.1).
const LEVEL_SHIFT: i32 = 128;

/// Returns the position of a coefficient in a block by its horizontal and vertical frequency.
pub(crate) fn position(u: usize, v: usize) -> usize {
    let rank = |frequency: usize| ORDER.iter().position(|other| *other == frequency).unwrap_or_default();
    let (u, v) = (rank(u), rank(v));
    u / 2 * 16 + v * 2 + u % 2
}

/// Transforms blocks to a fixed number of samples.
pub(crate) struct InverseDct {
    side: usize,
    /// The factors of each pair of frequencies, for each sample of the left half.
    cosines: CosineTable,
    transform: fn(&CosineTable, &Block) -> Samples,
    transform_low: fn(&CosineTable, &Block) -> Samples,
}

type CosineTable = [[i16x8; 4]; SIDE / 2];

/// Samples row by row; only the first `side` rows and columns are used.
pub(crate) type Samples = [[u8; SIDE]; SIDE];

impl InverseDct {
    /// Creates a transform to `side * side` samples, 1 to 8.
    pub(crate) fn new(side: usize) -> Self {
        let cosine = |sample: usize, frequency: usize| {
            let norm = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 };
            let angle = (2 * sample + 1) as f64 * frequency as f64 * PI / (2 * side) as f64;
            let value = if frequency < side { norm * angle.cos() / 2.0 } else { 0.0 };
            (value * f64::from(1 << COSINE_BITS)).round() as i16
        };
        let mut cosines = [[i16x8::ZERO; 4]; SIDE / 2];
        for (sample, pairs) in cosines.iter_mut().enumerate().take(side.div_ceil(2)) {
            for (pair, coefficients) in pairs.iter_mut().zip(ORDER.chunks_exact(2)) {
                let [one, other] = [cosine(sample, coefficients[0]), cosine(sample, coefficients[1])];
                *pair = i16x8::new([one, other, one, other, one, other, one, other]);
            }
        }
        let (transform, transform_low): (fn(&_, &_) -> _, fn(&_, &_) -> _) = match side {
            1 => (transform::<1, true>, transform::<1, true>),
            2 => (transform::<2, true>, transform::<2, true>),
            3 => (transform::<3, true>, transform::<3, true>),
            4 => (transform::<4, true>, transform::<4, true>),
            5 => (transform::<5, false>, transform::<5, true>),
            6 => (transform::<6, false>, transform::<6, true>),
            7 => (transform::<7, false>, transform::<7, true>),
            _ => (transform::<8, false>, transform::<8, true>),
        };
        Self { side, cosines, transform, transform_low }
    }

    pub(crate) fn side(&self) -> usize {
        self.side
    }

    /// Transforms a block to samples.
    #[inline]
    pub(crate) fn samples(&self, block: &Block) -> Samples {
        if block.is_dc_only() || self.side == 1 {
            // The DC factor of both passes is 1 / (2 * sqrt(2)), together 1 / 8.
            let sample = ((i32::from(block.dc()) + 4) >> 3) + LEVEL_SHIFT;
            [[sample.clamp(0, 255) as u8; SIDE]; SIDE]
        } else if block.is_low() {
            (self.transform_low)(&self.cosines, block)
        } else {
            (self.transform)(&self.cosines, block)
        }
    }
}

/// Transforms horizontally, then vertically. `LOW` if all frequencies from the fifth on are zero.
fn transform<const SAMPLES: usize, const LOW: bool>(cosines: &CosineTable, block: &Block) -> Samples {
    let [low, high] = block.halves();
    let mut columns = [u32x4::ZERO; SIDE];
    for at in 0..SAMPLES.div_ceil(2) {
        let (left_low, right_low) = multiply_accumulate::<LOW>(&low, &cosines[at]);
        let (left_high, right_high) =
            if LOW { Default::default() } else { multiply_accumulate::<LOW>(&high, &cosines[at]) };
        columns[at] = to_intermediate(left_low, left_high);
        columns[SAMPLES - 1 - at] = to_intermediate(right_low, right_high);
    }
    let [a, b, c, d, e, f, g, h] = columns;
    let (left, right) = (transpose([a, b, c, d]), transpose([e, f, g, h]));
    let mut samples = [[0; SIDE]; SIDE];
    for at in 0..SAMPLES.div_ceil(2) {
        let (top_left, bottom_left) = multiply_accumulate::<LOW>(&left, &cosines[at]);
        let (top_right, bottom_right) =
            if SAMPLES > 4 { multiply_accumulate::<LOW>(&right, &cosines[at]) } else { Default::default() };
        samples[at] = row(top_left, top_right);
        samples[SAMPLES - 1 - at] = row(bottom_left, bottom_right);
    }
    samples
}

/// Multiplies pairs of frequencies by their cosines; returns the sample, and its mirror image from the other end.
#[inline(always)]
fn multiply_accumulate<const LOW: bool>(pairs: &[i16x8; 4], cosines: &[i16x8; 4]) -> (i32x4, i32x4) {
    let (mut even, mut odd) = (pairs[0].dot(cosines[0]), pairs[1].dot(cosines[1]));
    if !LOW {
        even += pairs[2].dot(cosines[2]);
        odd += pairs[3].dot(cosines[3]);
    }
    (even + odd, even - odd)
}

/// Rounds the sums of the first pass to pairs for the second one.
#[inline(always)]
fn to_intermediate(low: i32x4, high: i32x4) -> u32x4 {
    const SHIFT: i32 = COSINE_BITS - INTERMEDIATE_BITS;
    let round = |sum: i32x4| (sum + i32x4::splat(1 << (SHIFT - 1))) >> SHIFT;
    cast(i16x8::from_i32x8_saturate(cast::<[i32x4; 2], i32x8>([round(low), round(high)])))
}

/// Returns each pair of frequencies of all four columns.
#[inline(always)]
fn transpose(columns: [u32x4; 4]) -> [i16x8; 4] {
    let [a, b, c, d] = u32x4::transpose(columns);
    [cast(a), cast(b), cast(c), cast(d)]
}

#[inline(always)]
fn row(left: i32x4, right: i32x4) -> [u8; SIDE] {
    const SHIFT: i32 = COSINE_BITS + INTERMEDIATE_BITS;
    let round = |sum: i32x4| (sum + i32x4::splat((LEVEL_SHIFT << SHIFT) + (1 << (SHIFT - 1)))) >> SHIFT;
    let row = i16x8::from_i32x8_saturate(cast::<[i32x4; 2], i32x8>([round(left), round(right)]));
    let [row, _] = cast::<u8x16, [[u8; SIDE]; 2]>(u8x16::narrow_i16x8(row, row));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ZIGZAG;

    /// The inverse DCT by its definition (T.81 A.3.3), in floating point.
    fn reference_idct(side: usize, coefficients: &[[f64; SIDE]; SIDE]) -> Vec<Vec<f64>> {
        let cosine = |at: usize, frequency: usize| {
            let norm = if frequency == 0 { FRAC_1_SQRT_2 } else { 1.0 };
            norm * ((2 * at + 1) as f64 * frequency as f64 * PI / (2 * side) as f64).cos() / 2.0
        };
        let sample = |x: usize, y: usize| {
            let all = (0..side).flat_map(|u| (0..side).map(move |v| (u, v)));
            let sum: f64 = all.map(|(u, v)| coefficients[u][v] * cosine(x, u) * cosine(y, v)).sum();
            (sum + 128.0).clamp(0.0, 255.0)
        };
        (0..side).map(|y| (0..side).map(|x| sample(x, y)).collect()).collect()
    }

    #[test]
    fn samples_match_the_definition() {
        let mut random = fastrand::Rng::with_seed(1);
        for side in 1..=SIDE {
            let idct = InverseDct::new(side);
            for coded in (0..200).flat_map(|_| [1, 2, 6, 10, 11, 64]) {
                let mut coefficients = [[0.0; SIDE]; SIDE];
                let mut block = Block::default();
                for (at, (u, v)) in ZIGZAG.into_iter().enumerate().take(coded) {
                    let value = random.i16(-600..600) / (1 + at as i16);
                    coefficients[u][v] = value.into();
                    if u < side && v < side {
                        block.set(position(u, v), at, value);
                    }
                }
                let samples = idct.samples(&block);
                for (row, expected) in samples.iter().zip(reference_idct(side, &coefficients)) {
                    for (sample, expected) in row.iter().zip(expected) {
                        assert!((f64::from(*sample) - expected).abs() < 0.6, "{side}: {sample} is not {expected}");
                    }
                }
            }
        }
    }
}
