//! Search of the 16x16 luma mode of a macroblock.

use wide::i16x8;

use crate::{
    bit_cost::{FIXED_COSTS, TokenCosts},
    context::Context,
    macroblock_encoder::{LumaCandidate, LumaMode},
    predict::{LUMA, predict_blocks},
    quantizer::Segment,
    rd_score::{QuantizedBlock, RdScore, all_blocks, nearest_two},
    simd::{
        Blocks8, NonzeroCounts, forward, inverse, pixels_of, quantize, squared_errors, sum_absolute_differences,
        texture_energy,
    },
    source::SourceMacroblock,
};

/// A second mode is not tried if its prediction error is larger by more than one in this many.
const SECOND_MODE_SHARE: i32 = 4;

/// Returns the better of the two modes with the smallest prediction error.
pub(crate) fn search_intra16(
    source: &SourceMacroblock,
    textures: &[i16x8; 2],
    segment: &mut Segment,
    costs: &TokenCosts,
    context: &Context,
) -> LumaCandidate {
    let neighbours = context.luma();
    let half = |layout| predict_blocks([&neighbours, &neighbours], layout);
    let predictions = [half(&LUMA[0]), half(&LUMA[1])];
    let is_flat = source.is_flat();
    let distance = |mode: usize| {
        let half = |n: usize| sum_absolute_differences(&source.luma[n], &predictions[n][mode]);
        half(0) + half(1)
    };
    let distances = [distance(0), distance(1), distance(2), distance(3)];
    let [nearest, second] = nearest_two(distances);
    let attempt = |mode: usize| {
        let predictions = [&predictions[0][mode], &predictions[1][mode]];
        let mut candidate = Intra16Candidate::new(mode, source, textures, predictions, segment, is_flat);
        candidate.score.bits = candidate.bits(costs, context);
        candidate
    };
    let mut chosen = attempt(nearest);
    if distances[second] < distances[nearest] + distances[nearest] / SECOND_MODE_SHARE {
        let other = attempt(second);
        if other.score.weighted(segment.lambda_intra16) < chosen.score.weighted(segment.lambda_intra16) {
            chosen = other;
        }
    }
    let blocks = chosen.blocks();
    let has_dc_only = chosen.y2.coded > 0 && blocks.iter().all(|block| block.coded <= 1);
    if has_dc_only && chosen.score.distortion > segment.min_distortion {
        let [a, b, c] = [1, 2, 4].map(|n: usize| i32::from(chosen.y2.levels[n].unsigned_abs()));
        segment.edge = segment.edge.max(a).max(b).max(c);
    }
    LumaCandidate {
        mode: LumaMode::Intra16(chosen.mode as u8),
        score: chosen.score,
        y2: chosen.y2,
        blocks,
        pixels: std::array::from_fn(|n| pixels_of(&chosen.pixels[n / 8], n % 8)),
    }
}

/// A macroblock's luma, encoded with one 16x16 mode.
struct Intra16Candidate {
    mode: usize,
    score: RdScore,
    y2: QuantizedBlock,
    levels: [Blocks8; 2],
    coded: [i16x8; 2],
    pixels: [Blocks8; 2],
}

impl Intra16Candidate {
    fn new(
        mode: usize,
        source: &SourceMacroblock,
        textures: &[i16x8; 2],
        predictions: [&Blocks8; 2],
        segment: &Segment,
        is_flat: bool,
    ) -> Self {
        let mut coefficients = [forward(&source.luma[0], predictions[0]), forward(&source.luma[1], predictions[1])];
        let (y2, dc) = code_y2(&coefficients[0][0].to_array(), &coefficients[1][0].to_array(), segment);
        let mut distortion = 0;
        let mut texture_error = 0;
        let mut levels = [[i16x8::ZERO; 16]; 2];
        let mut pixels = levels;
        for half in 0..2 {
            coefficients[half][0] = i16x8::ZERO;
            let (quantized, mut decoded) = quantize(&coefficients[half], &segment.luma);
            decoded[0] = i16x8::new(std::array::from_fn(|n| dc[half * 8 + n]));
            levels[half] = quantized;
            pixels[half] = inverse(&decoded, predictions[half]);
            distortion += i64::from(squared_errors(&source.luma[half], &pixels[half]).reduce_add());
            texture_error += i64::from((texture_energy(&pixels[half]) - textures[half]).abs().reduce_add());
        }
        let coded = [NonzeroCounts::of(&levels[0]).coded, NonzeroCounts::of(&levels[1]).coded];
        distortion += (segment.lambda_texture * texture_error + 128) >> 8;
        if is_flat && coded.iter().all(|half| half.reduce_max() == 0) {
            distortion *= 2;
        }
        let score = RdScore { distortion, bits: 0, header: FIXED_COSTS.intra16[mode] };
        Self { mode, score, y2, levels, coded, pixels }
    }

    fn blocks(&self) -> [QuantizedBlock; 16] {
        let halves: [[QuantizedBlock; 8]; 2] = [0, 1].map(|half| all_blocks(&self.levels[half], self.coded[half]));
        std::array::from_fn(|n| halves[n / 8][n % 8])
    }

    fn bits(&self, costs: &TokenCosts, context: &Context) -> i64 {
        let (mut above, mut left) = (context.above().coded, context.left.coded);
        let nonzero = usize::from(above[8] + left[8]);
        let mut bits = costs.block(1, 0, nonzero, self.y2.coded, |n| self.y2.levels[n]);
        for n in 0..16 {
            let (x, y, half, lane) = (n % 4, n / 4, n / 8, n % 8);
            let coded = self.coded[half].as_array()[lane] as usize;
            let level = |n: usize| self.levels[half][n].as_array()[lane];
            bits += costs.block(0, 1, usize::from(above[x] + left[y]), coded, level);
            above[x] = u8::from(coded > 1);
            left[y] = above[x];
        }
        bits.into()
    }
}

/// Encodes the DC coefficients of sixteen blocks as the Y2 block by the Walsh-Hadamard transform (RFC 6386, section 14.3).
/// Returns its levels, and the DC coefficients that a decoder reconstructs from them.
fn code_y2(upper: &[i16; 8], lower: &[i16; 8], segment: &Segment) -> (QuantizedBlock, [i16; 16]) {
    let dc = |n: usize| i32::from(if n < 8 { upper[n] } else { lower[n - 8] });
    let mut t = [0; 16];
    for row in 0..4 {
        let [p0, p1, p2, p3] = [0, 1, 2, 3].map(|n| dc(row * 4 + n));
        let (a0, a1, a2, a3) = (p0 + p2, p1 + p3, p1 - p3, p0 - p2);
        t[row * 4..][..4].copy_from_slice(&[a0 + a1, a3 + a2, a3 - a2, a0 - a1]);
    }
    let mut levels = [0_i16; 16];
    let mut c = [0; 16];
    for n in 0..4 {
        let (a0, a1, a2, a3) = (t[n] + t[8 + n], t[4 + n] + t[12 + n], t[4 + n] - t[12 + n], t[n] - t[8 + n]);
        for (row, value) in [a0 + a1, a3 + a2, a3 - a2, a0 - a1].into_iter().enumerate() {
            let at = row * 4 + n;
            let index = usize::from(at > 0);
            let level = segment.y2.level(value >> 1, index);
            levels[at] = level as i16;
            c[at] = level * i32::from(segment.y2.step[index]);
        }
    }
    let coded = crate::ZIGZAG.iter().rposition(|position| levels[*position] != 0).map_or(0, |n| n + 1);

    let mut t = [0; 16];
    for n in 0..4 {
        let (a0, a1, a2, a3) = (c[n] + c[12 + n], c[4 + n] + c[8 + n], c[4 + n] - c[8 + n], c[n] - c[12 + n]);
        (t[n], t[8 + n], t[4 + n], t[12 + n]) = (a0 + a1, a0 - a1, a3 + a2, a3 - a2);
    }
    let mut reconstructed = [0_i16; 16];
    for row in 0..4 {
        let [p0, p1, p2, p3] = [0, 1, 2, 3].map(|n| t[row * 4 + n]);
        let (a0, a1, a2, a3) = (p0 + 3 + p3, p1 + p2, p1 - p2, p0 + 3 - p3);
        let values = [a0 + a1, a3 + a2, a0 - a1, a3 - a2];
        (0..4).for_each(|n| reconstructed[row * 4 + n] = (values[n] >> 3) as i16);
    }
    (QuantizedBlock { levels, coded }, reconstructed)
}
