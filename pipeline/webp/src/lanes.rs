//! Eight 4x4 blocks at a time: a vector holds the same pixel, or the same coefficient, of each. So no kernel ever moves
//! anything between lanes, and eight guesses at one block cost little more than one.

use wide::{i16x8, i32x8, u8x16};

use crate::quantizer::Matrix;

/// Sixteen pixels or coefficients, row by row, of eight blocks.
pub(crate) type Lanes = [i16x8; 16];

/// The same block eight times.
pub(crate) fn splat(block: &[u8; 16]) -> Lanes {
    let mut lanes = [i16x8::ZERO; 16];
    for (lane, pixel) in lanes.iter_mut().zip(block) {
        *lane = i16x8::splat((*pixel).into());
    }
    lanes
}

/// Eight blocks side by side.
#[inline]
pub(crate) fn gather(blocks: [&[u8; 16]; 8]) -> Lanes {
    let mut halves = [[i16x8::ZERO; 8]; 2];
    for n in 0..8 {
        let block = u8x16::new(*blocks[n]);
        halves[0][n] = i16x8::from_u8x16_low(block);
        halves[1][n] = i16x8::from_u8x16_high(block);
    }
    join(i16x8::transpose(halves[0]), i16x8::transpose(halves[1]))
}

#[inline]
fn join(upper: [i16x8; 8], lower: [i16x8; 8]) -> Lanes {
    let mut lanes = [i16x8::ZERO; 16];
    lanes[..8].copy_from_slice(&upper);
    lanes[8..].copy_from_slice(&lower);
    lanes
}

/// One block of eight.
#[inline]
pub(crate) fn block_of(lanes: &Lanes, block: usize) -> [i16; 16] {
    let mut values = [0; 16];
    for (value, lane) in values.iter_mut().zip(lanes) {
        *value = lane.as_array()[block & 7];
    }
    values
}

pub(crate) fn pixels_of(lanes: &Lanes, block: usize) -> [u8; 16] {
    let mut pixels = [0; 16];
    for (pixel, lane) in pixels.iter_mut().zip(lanes) {
        *pixel = lane.as_array()[block & 7] as u8;
    }
    pixels
}

/// The transform of what a guess leaves over.
pub(crate) fn forward(source: &Lanes, guess: &Lanes) -> Lanes {
    let mut lanes = [i16x8::ZERO; 16];
    for row in (0..16).step_by(4) {
        let left_over = |n: usize| source[row + n] - guess[row + n];
        let line = across([left_over(0), left_over(1), left_over(2), left_over(3)]);
        lanes[row..row + 4].copy_from_slice(&line);
    }
    for n in 0..4 {
        let column = down([lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]]);
        [lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]] = column;
    }
    lanes
}

#[inline]
fn across([d0, d1, d2, d3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (d0 + d3, d1 + d2, (d1 - d2) << 5, (d0 - d3) << 5);
    let odd = high(a2, 8_868) + high(a3, 21_408) + i16x8::splat(4);
    let last = high(a3, 8_868) - high(a2, 21_408) + i16x8::splat(1);
    [(a0 + a1) << 3, odd, (a0 - a1) << 3, last]
}

#[inline]
fn down([t0, t1, t2, t3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (t0 + t3, t1 + t2, t1 - t2, t0 - t3);
    let is_flat = a3.simd_eq(i16x8::ZERO);
    let (b2, b3) = (a2 << 1, a3 << 1);
    let odd = (high(b2, 8_868) + high(b3, 21_408) + i16x8::splat(2)) >> 3;
    let last = (high(b3, 8_868) - high(b2, 21_408) + i16x8::splat(6)) >> 3;
    let seven = i16x8::splat(7);
    // Minus one for true: one more wherever there is a slope.
    [(a0 + a1 + seven) >> 4, odd + i16x8::ONE + is_flat, (a0 - a1 + seven) >> 4, last]
}

#[inline]
fn high(a: i16x8, by: i16) -> i16x8 {
    a.mul_keep_high(i16x8::splat(by))
}

/// Levels, and the coefficients that a decoder will make of them.
pub(crate) fn quantize(coefficients: &Lanes, matrix: &Matrix) -> (Lanes, Lanes) {
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

/// What a decoder will show.
pub(crate) fn inverse(coefficients: &Lanes, guess: &Lanes) -> Lanes {
    let mut lanes = [i16x8::ZERO; 16];
    let c = coefficients;
    for n in 0..4 {
        let column = back([c[n], c[n + 4], c[n + 8], c[n + 12]], i16x8::ZERO);
        [lanes[n], lanes[n + 4], lanes[n + 8], lanes[n + 12]] = column;
    }
    let (black, white) = (i16x8::ZERO, i16x8::splat(255));
    for row in (0..16).step_by(4) {
        let line = back([lanes[row], lanes[row + 1], lanes[row + 2], lanes[row + 3]], i16x8::splat(4));
        for n in 0..4 {
            lanes[row + n] = (guess[row + n] + (line[n] >> 3_i32)).max(black).min(white);
        }
    }
    lanes
}

#[inline]
fn back([c0, c1, c2, c3]: [i16x8; 4], rounding: i16x8) -> [i16x8; 4] {
    // 20091 / 65536 + 1, and 35468 / 65536, which has no room in sixteen bits.
    let longer = |a: i16x8| high(a, 20_091) + a;
    let shorter = |a: i16x8| high(a, -30_068) + a;
    let (a, b) = (c0 + rounding + c2, c0 + rounding - c2);
    let (c, d) = (shorter(c1) - longer(c3), longer(c1) + shorter(c3));
    [a + d, b + c, b - c, a - d]
}

/// Absolute differences of all eight blocks together.
pub(crate) fn distance(a: &Lanes, b: &Lanes) -> i32 {
    let mut sum = i16x8::ZERO;
    for n in 0..16 {
        sum += (a[n] - b[n]).abs();
    }
    sum.as_array().iter().map(|sum| i32::from(*sum)).sum()
}

/// Squared differences of each block.
pub(crate) fn difference(a: &Lanes, b: &Lanes) -> i32x8 {
    let mut sum = i32x8::ZERO;
    for n in 0..16 {
        let d = a[n] - b[n];
        sum += d.widening_mul(d);
    }
    sum
}

/// How much of each frequency is in a block, low ones counting more: what the eye sees of it.
pub(crate) fn texture(pixels: &Lanes) -> i16x8 {
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
    let weigh = |sum: i16x8, by: i16| high(sum << 3, by << 8);
    weigh(f[0], 38)
        + weigh(f[1] + f[4], 32)
        + weigh(f[2] + f[8], 20)
        + weigh(f[3] + f[12], 9)
        + weigh(f[5], 28)
        + weigh(f[6] + f[9], 17)
        + weigh(f[7] + f[13], 7)
        + weigh(f[10], 10)
        + weigh(f[11] + f[14], 4)
        + weigh(f[15], 2)
}

#[inline]
fn butterfly([p0, p1, p2, p3]: [i16x8; 4]) -> [i16x8; 4] {
    let (a0, a1, a2, a3) = (p0 + p2, p1 + p3, p1 - p3, p0 - p2);
    [a0 + a1, a3 + a2, a3 - a2, a0 - a1]
}

/// What there is to code in each block.
pub(crate) struct Extent {
    /// One more than the place of the last coefficient, in the order of the standard.
    pub(crate) coded: i16x8,
    /// How many there are besides the mean.
    pub(crate) details: i16x8,
}

impl Extent {
    pub(crate) fn of(levels: &Lanes) -> Self {
        let (mut coded, mut details) = (i16x8::ZERO, i16x8::ZERO);
        for (n, place) in crate::ZIGZAG.into_iter().enumerate() {
            let is_zero = levels[place].simd_eq(i16x8::ZERO);
            coded = coded.max(!is_zero & i16x8::splat(n as i16 + 1));
            if n > 0 {
                // Minus one for true.
                details = details + i16x8::ONE + is_zero;
            }
        }
        Self { coded, details }
    }
}
