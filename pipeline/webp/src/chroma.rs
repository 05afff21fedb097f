//! Search of the chroma mode, common to both planes of a macroblock.

use wide::i16x8;

use crate::{
    bit_cost::{FIXED_COSTS, TokenCosts},
    context::Context,
    predict::{CHROMA, predict_blocks},
    quantizer::Segment,
    rd_score::{FLATNESS_PENALTY, QuantizedBlock, RdScore, all_blocks, nearest_two},
    simd::{NonzeroCounts, forward, inverse, pixels_of, quantize, squared_errors, sum_absolute_differences},
    source::SourceMacroblock,
};

/// Above this quality the DC quantization error is invisible and is not diffused.
const DIFFUSION_QUALITY: f32 = 98.0;

/// A macroblock's chroma, encoded with one mode.
pub(crate) struct ChromaCandidate {
    pub(crate) mode: u8,
    pub(crate) header: i64,
    pub(crate) blocks: [QuantizedBlock; 8],
    pub(crate) pixels: [[u8; 16]; 8],
    /// Quantization errors of the DC coefficients, by plane, diffused to the neighbours.
    pub(crate) errors: [[i8; 3]; 2],
}

/// Returns the better of the two modes with the smallest prediction error.
pub(crate) fn search_chroma(
    source: &SourceMacroblock,
    segment: &Segment,
    costs: &TokenCosts,
    context: &Context,
    quality: f32,
) -> ChromaCandidate {
    let neighbours = [context.chroma(0), context.chroma(1)];
    let predictions = predict_blocks([&neighbours[0], &neighbours[1]], &CHROMA);
    let mut best: Option<(i64, ChromaCandidate)> = None;
    let distance = |mode: usize| sum_absolute_differences(&source.chroma, &predictions[mode]);
    for mode in nearest_two([distance(0), distance(1), distance(2), distance(3)]) {
        let prediction = &predictions[mode];
        let mut coefficients = forward(&source.chroma, prediction);
        let mut errors = [[0; 3]; 2];
        if quality <= DIFFUSION_QUALITY {
            let mut dc = coefficients[0].to_array();
            for plane in 0..2 {
                let (above, left) = (context.above().errors[plane], context.left.errors[plane]);
                errors[plane] = diffuse(&mut dc[plane * 4..][..4], segment, above, left);
            }
            coefficients[0] = i16x8::new(dc);
        }
        let (levels, decoded) = quantize(&coefficients, &segment.chroma);
        let reconstructed = inverse(&decoded, prediction);
        let mut score = RdScore {
            distortion: squared_errors(&source.chroma, &reconstructed).reduce_add().into(),
            bits: 0,
            header: FIXED_COSTS.chroma[mode],
        };
        if best.as_ref().is_some_and(|(least, _)| score.weighted(segment.lambda_chroma) >= *least) {
            continue;
        }
        let nonzero = NonzeroCounts::of(&levels);
        if mode > 0 && nonzero.ac.reduce_add() <= 2 {
            score.bits += FLATNESS_PENALTY * 8;
        }
        let blocks = all_blocks(&levels, nonzero.coded);
        let (mut above, mut left) = (context.above().coded, context.left.coded);
        for (n, block) in blocks.iter().enumerate() {
            let (x, y) = (4 + n / 4 * 2 + n % 2, 4 + n / 4 * 2 + n / 2 % 2);
            score.bits +=
                i64::from(costs.block(2, 0, usize::from(above[x] + left[y]), block.coded, |n| block.levels[n]));
            above[x] = u8::from(block.coded > 0);
            left[y] = above[x];
        }
        let total = score.weighted(segment.lambda_chroma);
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            let pixels = std::array::from_fn(|n| pixels_of(&reconstructed, n));
            best = Some((total, ChromaCandidate { mode: mode as u8, header: score.header, blocks, pixels, errors }));
        }
    }
    best.map_or_else(|| unreachable!("the first mode is always accepted"), |(_, candidate)| candidate)
}

/// Quantizes the DC coefficients of four blocks with error diffusion. Returns the errors for the neighbouring macroblocks.
fn diffuse(dc: &mut [i16], segment: &Segment, above: [i8; 2], left: [i8; 2]) -> [i8; 3] {
    let quantize = |dc: &mut i16, from_above: i32, from_left: i32| {
        let wanted = i32::from(*dc) + ((7 * from_above + 8 * from_left) >> 3);
        let reconstructed = segment.chroma.level(wanted, 0) * i32::from(segment.chroma.step[0]);
        *dc = reconstructed as i16;
        (wanted - reconstructed) >> 1
    };
    let [above, left] = [above, left].map(|errors| errors.map(i32::from));
    let first = quantize(&mut dc[0], above[0], left[0]);
    let second = quantize(&mut dc[1], above[1], first);
    let third = quantize(&mut dc[2], first, left[1]);
    let fourth = quantize(&mut dc[3], second, third);
    [second, third, fourth].map(|error| error.clamp(-127, 127) as i8)
}
