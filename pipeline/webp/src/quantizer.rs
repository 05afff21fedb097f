//! Quantization and loop filter parameters per segment. The quality scale is libwebp's.

use wide::i16x8;

use crate::tables::{AC_TABLE, DC_TABLE};

/// Strength of spatial noise shaping, of 100 (`sns_strength` of libwebp).
const SHAPING: i32 = 50;
/// Strength of the loop filter, of 100 (`filter_strength` of libwebp).
const FILTER: i32 = 60;
/// Weaker filtering is invisible and turned off.
const WEAKEST_FILTER: i32 = 2;

/// Quantization of one kind of block: DC at index 0, AC at index 1.
#[derive(Debug, Clone)]
pub(crate) struct QuantizationMatrix {
    pub(crate) step: [i16; 2],
    /// `2^17 / step`.
    pub(crate) inverse: [i16; 2],
    /// Rounding bias, in `1 / 2^17`.
    pub(crate) bias: [i32; 2],
    /// Boost of high frequencies before quantization.
    pub(crate) sharpen: [i16x8; 16],
}

impl QuantizationMatrix {
    fn new(step: [u16; 2], bias: [i32; 2], is_sharpened: bool) -> Self {
        const SHARPEN: [u32; 16] = [0, 30, 60, 90, 30, 60, 90, 90, 60, 90, 90, 90, 90, 90, 90, 90];
        let sharpen = |n: usize| ((SHARPEN[n] * u32::from(step[usize::from(n > 0)])) >> 11) as i16;
        Self {
            step: step.map(|step| step as i16),
            inverse: step.map(|step| ((1_i32 << 17) / i32::from(step)).min(i16::MAX.into()) as i16),
            bias: bias.map(|bias| bias << 9),
            sharpen: std::array::from_fn(|n| i16x8::splat(if is_sharpened { sharpen(n) } else { 0 })),
        }
    }

    /// Quantizes one coefficient.
    pub(crate) fn level(&self, coefficient: i32, index: usize) -> i32 {
        let size = (coefficient.abs() * i32::from(self.inverse[index]) + self.bias[index]) >> 17;
        size.min(2047) * coefficient.signum()
    }

    fn mean_step(&self) -> i64 {
        (i64::from(self.step[0]) + 15 * i64::from(self.step[1]) + 8) >> 4
    }
}

/// The parameters of macroblocks of similar complexity (RFC 6386, section 9.3).
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) quantizer: usize,
    pub(crate) filter: i32,
    /// The matrix of luma blocks (Y1).
    pub(crate) luma: QuantizationMatrix,
    /// The matrix of the luma DC block (Y2).
    pub(crate) y2: QuantizationMatrix,
    pub(crate) chroma: QuantizationMatrix,
    /// Lagrange multipliers: the squared error that one bit is worth, per decision.
    pub(crate) lambda_intra4: i64,
    pub(crate) lambda_intra16: i64,
    pub(crate) lambda_chroma: i64,
    pub(crate) lambda_mode: i64,
    /// The weight of the texture distortion.
    pub(crate) lambda_texture: i64,
    /// Squared error below which a block with DC only needs no filter.
    pub(crate) min_distortion: i64,
    /// The largest DC step between such blocks so far.
    pub(crate) edge: i32,
}

/// How a segment reacts to coarser coding, relative to the others (alpha and beta of libwebp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Susceptibility {
    /// Tolerance to quantization, -127 to 127.
    pub(crate) quantization: i32,
    /// Need of filtering, 0 to 255; higher needs less.
    pub(crate) filter: i32,
}

/// Offsets of the chroma quantizers, for the whole image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChromaOffsets {
    pub(crate) dc: i32,
    pub(crate) ac: i32,
}

impl ChromaOffsets {
    /// `compressibility` of chroma is about 30 (low) to 100 (high).
    pub(crate) fn new(compressibility: i32) -> Self {
        let ac = (compressibility - 64) * 10 / 70 * SHAPING / 100;
        Self { dc: -4 * SHAPING / 100, ac: ac.clamp(-4, 6) }
    }
}

impl Segment {
    pub(crate) fn new(quality: f32, susceptibility: Susceptibility, chroma: ChromaOffsets) -> Self {
        let quality = f64::from(quality.clamp(0.0, 100.0)) / 100.0;
        let linear = if quality < 0.75 { quality * (2.0 / 3.0) } else { 2.0 * quality - 1.0 };
        let shaping = 0.9 * f64::from(SHAPING) / 100.0 / 128.0;
        let compression = linear.cbrt().powf(1.0 - shaping * f64::from(susceptibility.quantization));
        let quantizer = ((127.0 * (1.0 - compression)) as i32).clamp(0, 127);

        let at = |offset: i32, last: i32| (quantizer + offset).clamp(0, last) as usize;
        let (dc, ac) = (DC_TABLE[at(0, 127)], AC_TABLE[at(0, 127)]);
        let luma = QuantizationMatrix::new([dc, ac], [96, 110], true);
        let y2 = QuantizationMatrix::new([dc * 2, (ac * 155 / 100).max(8)], [96, 108], false);
        let chroma = [DC_TABLE[at(chroma.dc, 117)], AC_TABLE[at(chroma.ac, 127)]];
        let chroma = QuantizationMatrix::new(chroma, [110, 115], false);

        let strength = i32::from(ac >> 2).min(63) * 5 * FILTER / (256 + susceptibility.filter);
        let (q4, q16, quv) = (luma.mean_step(), y2.mean_step(), chroma.mean_step());
        Self {
            quantizer: at(0, 127),
            filter: if strength < WEAKEST_FILTER { 0 } else { strength.min(63) },
            lambda_intra4: ((3 * q4 * q4) >> 7).max(1),
            lambda_intra16: 3 * q16 * q16,
            lambda_chroma: ((3 * quv * quv) >> 6).max(1),
            lambda_mode: ((q4 * q4) >> 7).max(1),
            lambda_texture: ((i64::from(SHAPING) * q4) >> 5).max(1),
            min_distortion: 20 * i64::from(dc),
            edge: 0,
            luma,
            y2,
            chroma,
        }
    }

    /// Returns the filter strength after encoding, raised so that steps between flat blocks are smoothed.
    pub(crate) fn final_filter(&self) -> i32 {
        self.filter.max(((self.edge * i32::from(self.y2.step[1])) >> 3).min(63))
    }
}
