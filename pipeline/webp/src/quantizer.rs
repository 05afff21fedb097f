//! How coarsely each part of a picture is coded. The scale of qualities is libwebp's, so that a setting means what
//! people know it to mean.

use wide::i16x8;

use crate::standard::{AC_STEPS, DC_STEPS};

/// How much the quantizer follows what a segment can bear, of 100.
const SHAPING: i32 = 50;
/// How much the deblocking filter does, of 100.
const FILTER: i32 = 60;
/// Weaker filtering is not seen.
const WEAKEST_FILTER: i32 = 2;

/// One kind of block: the mean at 0, everything else at 1.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub(crate) step: [i16; 2],
    /// `2^17 / step`.
    pub(crate) inverse: [i16; 2],
    /// What is added before rounding down, in `1 / 2^17`.
    pub(crate) bias: [i32; 2],
    /// Fine detail is coded a little stronger than it is.
    pub(crate) sharpen: [i16x8; 16],
}

impl Matrix {
    fn new(step: [u16; 2], bias: [i32; 2], sharpens: bool) -> Self {
        const SHARPEN: [u32; 16] = [0, 30, 60, 90, 30, 60, 90, 90, 60, 90, 90, 90, 90, 90, 90, 90];
        let sharpen = |n: usize| ((SHARPEN[n] * u32::from(step[usize::from(n > 0)])) >> 11) as i16;
        Self {
            step: step.map(|step| step as i16),
            inverse: step.map(|step| ((1_i32 << 17) / i32::from(step)).min(i16::MAX.into()) as i16),
            bias: bias.map(|bias| bias << 9),
            sharpen: std::array::from_fn(|n| i16x8::splat(if sharpens { sharpen(n) } else { 0 })),
        }
    }

    /// The level of one coefficient.
    pub(crate) fn level(&self, coefficient: i32, side: usize) -> i32 {
        let size = (coefficient.abs() * i32::from(self.inverse[side]) + self.bias[side]) >> 17;
        size.min(2047) * coefficient.signum()
    }

    fn mean_step(&self) -> i64 {
        (i64::from(self.step[0]) + 15 * i64::from(self.step[1]) + 8) >> 4
    }
}

/// What macroblocks of about the same difficulty share.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) quantizer: usize,
    pub(crate) filter: i32,
    pub(crate) luma: Matrix,
    pub(crate) means: Matrix,
    pub(crate) chroma: Matrix,
    /// What a bit costs in squared error, by what is decided.
    pub(crate) small: i64,
    pub(crate) large: i64,
    pub(crate) colour: i64,
    pub(crate) between: i64,
    /// What lost texture costs.
    pub(crate) texture: i64,
    /// Squared error below which a flat block needs no filter.
    pub(crate) least_error: i64,
    /// The largest step between flat blocks seen so far.
    pub(crate) edge: i32,
}

/// How a segment differs from the others: -127 to 127 how well it hides errors, 0 to 255 how busy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Character {
    pub(crate) masking: i32,
    pub(crate) busyness: i32,
}

/// Offsets of the chroma quantizers, for the whole picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chroma {
    pub(crate) dc: i32,
    pub(crate) ac: i32,
}

impl Chroma {
    /// `ease` is how easily colour can be coded: about 30 (hardly) to 100 (very).
    pub(crate) fn new(ease: i32) -> Self {
        let ac = (ease - 64) * 10 / 70 * SHAPING / 100;
        Self { dc: -4 * SHAPING / 100, ac: ac.clamp(-4, 6) }
    }
}

impl Segment {
    pub(crate) fn new(quality: f32, character: Character, chroma: Chroma) -> Self {
        let quality = f64::from(quality.clamp(0.0, 100.0)) / 100.0;
        let linear = if quality < 0.75 { quality * (2.0 / 3.0) } else { 2.0 * quality - 1.0 };
        let shaping = 0.9 * f64::from(SHAPING) / 100.0 / 128.0;
        let compression = linear.cbrt().powf(1.0 - shaping * f64::from(character.masking));
        let quantizer = ((127.0 * (1.0 - compression)) as i32).clamp(0, 127);

        let at = |offset: i32, last: i32| (quantizer + offset).clamp(0, last) as usize;
        let (dc, ac) = (DC_STEPS[at(0, 127)], AC_STEPS[at(0, 127)]);
        let luma = Matrix::new([dc, ac], [96, 110], true);
        let means = Matrix::new([dc * 2, (ac * 155 / 100).max(8)], [96, 108], false);
        let chroma = [DC_STEPS[at(chroma.dc, 117)], AC_STEPS[at(chroma.ac, 127)]];
        let chroma = Matrix::new(chroma, [110, 115], false);

        let strength = i32::from(ac >> 2).min(63) * 5 * FILTER / (256 + character.busyness);
        let (q4, q16, quv) = (luma.mean_step(), means.mean_step(), chroma.mean_step());
        Self {
            quantizer: at(0, 127),
            filter: if strength < WEAKEST_FILTER { 0 } else { strength.min(63) },
            small: ((3 * q4 * q4) >> 7).max(1),
            large: 3 * q16 * q16,
            colour: ((3 * quv * quv) >> 6).max(1),
            between: ((q4 * q4) >> 7).max(1),
            texture: ((i64::from(SHAPING) * q4) >> 5).max(1),
            least_error: 20 * i64::from(dc),
            edge: 0,
            luma,
            means,
            chroma,
        }
    }

    /// Steps between flat blocks are smoothed, even where little else is.
    pub(crate) fn final_filter(&self) -> i32 {
        self.filter.max(((self.edge * i32::from(self.means.step[1])) >> 3).min(63))
    }
}
