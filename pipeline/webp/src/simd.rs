//! Kernels on eight 4x4 blocks at a time. A vector holds the same pixel, or the same coefficient, of each block, so that no
//! kernel moves data between lanes, and eight predictions of one block cost little more than one.

use wide::{i16x8, i32x8, u8x16};

use crate::quantizer::QuantizationMatrix;

/// Eight 4x4 blocks: sixteen pixels or coefficients, row by row, with one block per lane.
pub(crate) type Blocks8 = [i16x8; 16];

/// Repeats a block in all lanes.
pub(crate) fn splat(block: &[u8; 16]) -> Blocks8 {
    let mut lanes = [i16x8::ZERO; 16];
    for (lane, pixel) in lanes.iter_mut().zip(block) {
        *lane = i16x8::splat((*pixel).into());
    }
    lanes
}

/// Puts eight blocks into the lanes.
#[inline]
pub(crate) fn gather(blocks: [&[u8; 16]; 8]) -> Blocks8 {
    let mut halves = [[i16x8::ZERO; 8]; 2];
    for n in 0..8 {
        let block = u8x16::new(*blocks[n]);
        halves[0][n] = i16x8::from_u8x16_low(block);
        halves[1][n] = i16x8::from_u8x16_high(block);
    }
    join(i16x8::transpose(halves[0]), i16x8::transpose(halves[1]))
}

#[inline]
fn join(upper: [i16x8; 8], lower: [i16x8; 8]) -> Blocks8 {
    let mut lanes = [i16x8::ZERO; 16];
    lanes[..8].copy_from_slice(&upper);
    lanes[8..].copy_from_slice(&lower);
    lanes
}

/// Extracts the block of one lane.
#[inline]
pub(crate) fn block_of(lanes: &Blocks8, block: usize) -> [i16; 16] {
    let mut values = [0; 16];
    for (value, lane) in values.iter_mut().zip(lanes) {
        *value = lane.as_array()[block & 7];
    }
    values
}

pub(crate) fn pixels_of(lanes: &Blocks8, block: usize) -> [u8; 16] {
    let mut pixels = [0; 16];
    for (pixel, lane) in pixels.iter_mut().zip(lanes) {
        *pixel = lane.as_array()[block & 7] as u8;
    }
    pixels
}

/// The forward DCT of the prediction residuals, as in libwebp.
pub(crate) fn forward(source: &Blocks8, prediction: &Blocks8) -> Blocks8 {
    let mut lanes = [i16x8::ZERO; 16];
    for row in (0..16).step_by(4) {
        let residual = |n: usize| source[row + n] - prediction[row + n];
        let line = forward_rows([residual(0), residual(1), residual(2), residual(3)]);
        lanes[row..row + 4].copy_from_slice(&line);
    }
    for n in 0..4 {
        let column = forward_columns([lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]]);
        [lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]] = column;
    }
    lanes
}

#[inline]
fn forward_rows([d0, d1, d2, d3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (d0 + d3, d1 + d2, (d1 - d2) << 5, (d0 - d3) << 5);
    let odd = high(a2, 8_868) + high(a3, 21_408) + i16x8::splat(4);
    let last = high(a3, 8_868) - high(a2, 21_408) + i16x8::splat(1);
    [(a0 + a1) << 3, odd, (a0 - a1) << 3, last]
}

#[inline]
fn forward_columns([t0, t1, t2, t3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (t0 + t3, t1 + t2, t1 - t2, t0 - t3);
    let is_zero = a3.simd_eq(i16x8::ZERO);
    let (b2, b3) = (a2 << 1, a3 << 1);
    let odd = (high(b2, 8_868) + high(b3, 21_408) + i16x8::splat(2)) >> 3;
    let last = (high(b3, 8_868) - high(b2, 21_408) + i16x8::splat(6)) >> 3;
    let seven = i16x8::splat(7);
    // True is -1: adds one where a3 is not zero.
    [(a0 + a1 + seven) >> 4, odd + i16x8::ONE + is_zero, (a0 - a1 + seven) >> 4, last]
}

#[inline]
fn high(a: i16x8, by: i16) -> i16x8 {
    a.mul_keep_high(i16x8::splat(by))
}

/// Quantizes coefficients. Returns the levels and the dequantized coefficients.
pub(crate) fn quantize(coefficients: &Blocks8, matrix: &QuantizationMatrix) -> (Blocks8, Blocks8) {
    let mut levels = [i16x8::ZERO; 16];
    let mut decoded = [i16x8::ZERO; 16];
    let (mut inverse, mut step) = (i16x8::splat(matrix.inverse[0]), i16x8::splat(matrix.step[0]));
    let mut bias = i32x8::splat(matrix.bias[0]);
    for n in 0..16 {
        let sign = coefficients[n] >> 15_i32;
        let size = (coefficients[n] ^ sign) - sign + matrix.sharpen[n];
        let level = i16x8::from_i32x8_saturate((size.widening_mul(inverse) + bias) >> 17);
        levels[n] = (level ^ sign) - sign;
        decoded[n] = levels[n] * step;
        if n == 0 {
            (inverse, step) = (i16x8::splat(matrix.inverse[1]), i16x8::splat(matrix.step[1]));
            bias = i32x8::splat(matrix.bias[1]);
        }
    }
    (levels, decoded)
}

/// The inverse DCT added to the prediction (RFC 6386, section 14.4): what a decoder reconstructs.
pub(crate) fn inverse(coefficients: &Blocks8, prediction: &Blocks8) -> Blocks8 {
    let mut lanes = [i16x8::ZERO; 16];
    let c = coefficients;
    for n in 0..4 {
        let column = inverse_1d([c[n], c[n + 4], c[n + 8], c[n + 12]], i16x8::ZERO);
        [lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]] = column;
    }
    let (black, white) = (i16x8::ZERO, i16x8::splat(255));
    for row in (0..16).step_by(4) {
        let line = inverse_1d([lanes[row], lanes[row + 1], lanes[row + 2], lanes[row + 3]], i16x8::splat(4));
        for n in 0..4 {
            lanes[row + n] = (prediction[row + n] + (line[n] >> 3_i32)).max(black).min(white);
        }
    }
    lanes
}

#[inline]
fn inverse_1d([c0, c1, c2, c3]: [i16x8; 4], rounding: i16x8) -> [i16x8; 4] {
    // Multiplies by 20091 / 65536 + 1, and by 35468 / 65536, which does not fit into sixteen bits.
    let mul1 = |a: i16x8| high(a, 20_091) + a;
    let mul2 = |a: i16x8| high(a, -30_068) + a;
    let (a, b) = (c0 + rounding + c2, c0 + rounding - c2);
    let (c, d) = (mul2(c1) - mul1(c3), mul1(c1) + mul2(c3));
    [a + d, b + c, b - c, a - d]
}

/// Sum of absolute differences (SAD) over all eight blocks.
pub(crate) fn sum_absolute_differences(a: &Blocks8, b: &Blocks8) -> i32 {
    let mut sum = i16x8::ZERO;
    for n in 0..16 {
        sum += (a[n] - b[n]).abs();
    }
    sum.as_array().iter().map(|sum| i32::from(*sum)).sum()
}

/// Sum of squared errors (SSE) of each block.
pub(crate) fn squared_errors(a: &Blocks8, b: &Blocks8) -> i32x8 {
    let mut sum = i32x8::ZERO;
    for n in 0..16 {
        let d = a[n] - b[n];
        sum += d.widening_mul(d);
    }
    sum
}

/// The weighted Hadamard energy of each block, low frequencies weighing more (`TTransform` of libwebp).
pub(crate) fn texture_energy(pixels: &Blocks8) -> i16x8 {
    let mut f = [i16x8::ZERO; 16];
    for row in (0..16).step_by(4) {
        let line = butterfly([pixels[row], pixels[row + 1], pixels[row + 2], pixels[row + 3]]);
        f[row..row + 4].copy_from_slice(&line);
    }
    for n in 0..4 {
        let column = butterfly([f[n], f[n + 4], f[n + 8], f[n + 12]]);
        [f[n], f[n + 4], f[n + 8], f[n + 12]] = column;
    }
    for frequency in &mut f {
        *frequency = frequency.abs();
    }
    let weighted = |sum: i16x8, by: i16| high(sum << 3, by << 8);
    weighted(f[0], 38)
        + weighted(f[1] + f[4], 32)
        + weighted(f[2] + f[8], 20)
        + weighted(f[3] + f[12], 9)
        + weighted(f[5], 28)
        + weighted(f[6] + f[9], 17)
        + weighted(f[7] + f[13], 7)
        + weighted(f[10], 10)
        + weighted(f[11] + f[14], 4)
        + weighted(f[15], 2)
}

#[inline]
fn butterfly([p0, p1, p2, p3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (p0 + p2, p1 + p3, p1 - p3, p0 - p2);
    [a0 + a1, a3 + a2, a3 - a2, a0 - a1]
}

/// The numbers of nonzero coefficients of each block.
pub(crate) struct NonzeroCounts {
    /// One more than the zigzag index of the last nonzero coefficient.
    pub(crate) coded: i16x8,
    /// The number of nonzero AC coefficients.
    pub(crate) ac: i16x8,
}

impl NonzeroCounts {
    pub(crate) fn of(levels: &Blocks8) -> Self {
        let (mut coded, mut ac) = (i16x8::ZERO, i16x8::ZERO);
        for (n, place) in crate::ZIGZAG.into_iter().enumerate() {
            let is_zero = levels[place].simd_eq(i16x8::ZERO);
            coded = coded.max(!is_zero & i16x8::splat(n as i16 + 1));
            if n > 0 {
                // True is -1.
                ac = ac + i16x8::ONE + is_zero;
            }
        }
        Self { coded, ac }
    }
}
