//! Search of the 4x4 luma modes: sixteen blocks, each predicted from the ones before.

use wide::i16x8;

use crate::{
    bit_cost::{FIXED_COSTS, TokenCosts},
    context::Context,
    macroblock_encoder::{LumaCandidate, LumaMode},
    predict::predict_4x4,
    quantizer::Segment,
    rd_score::{FLATNESS_PENALTY, QuantizedBlock, RdScore},
    simd::{
        NonzeroCounts, block_of, forward, gather, inverse, pixels_of, quantize, splat, squared_errors, texture_energy,
    },
    source::SourceMacroblock,
};

/// Bounds beyond which the search is given up.
pub(crate) struct Limits {
    /// The rate-distortion score to beat.
    pub(crate) score: i64,
    /// Largest cost of all modes, in 256ths of a bit.
    pub(crate) header: i64,
}

/// Returns the sixteen blocks with their best modes, unless a limit is reached.
pub(crate) fn search_intra4(
    source: &SourceMacroblock,
    textures: &[i16x8; 2],
    segment: &Segment,
    costs: &TokenCosts,
    context: &Context,
    limits: Limits,
) -> Option<LumaCandidate> {
    let mut total = RdScore { header: FIXED_COSTS.is_intra4, ..RdScore::default() };
    let mut header = 0;
    let mut modes = [0_u8; 16];
    let mut blocks = [QuantizedBlock::default(); 16];
    let mut pixels = [[0; 16]; 16];
    let mut window = Window::new(context);
    let (mut above, mut left) = (context.above().coded, context.left.coded);
    let textures = [textures[0].to_array(), textures[1].to_array()];
    for n in 0..16 {
        let (x, y) = (n % 4, n / 4);
        let mode_above = if y > 0 { modes[n - 4] } else { context.above().modes[x] };
        let mode_left = if x > 0 { modes[n - 1] } else { context.left.modes[y] };
        let mode_costs = &FIXED_COSTS.intra4[usize::from(mode_above)][usize::from(mode_left)];
        let nonzero = usize::from(above[x] + left[y]);
        let block_context = BlockContext { edge: window.edge(x, y), mode_costs, nonzero };
        let (mode, block, reconstructed, score) =
            search_block(&source.blocks[n], textures[n / 8][n % 8], &block_context, segment, costs);
        total.add(score);
        header += score.header;
        if total.weighted(segment.lambda_mode) >= limits.score || header > limits.header {
            return None;
        }
        window.paint(x, y, &reconstructed);
        (modes[n], blocks[n], pixels[n]) = (mode, block, reconstructed);
        above[x] = u8::from(block.coded > 0);
        left[y] = above[x];
    }
    Some(LumaCandidate { mode: LumaMode::Intra4(modes), score: total, y2: QuantizedBlock::default(), blocks, pixels })
}

/// What the neighbours of a block determine.
struct BlockContext<'a> {
    /// The pixels around it, see [`Window::edge`].
    edge: [u8; 13],
    /// The cost of each mode, in 256ths of a bit.
    mode_costs: &'a [u16; 10],
    /// How many of the blocks above and to the left have coefficients.
    nonzero: usize,
}

/// Returns the best of the ten modes of one block, with its coefficients, its reconstruction and its score.
fn search_block(
    source: &[u8; 16],
    source_texture: i16,
    context: &BlockContext<'_>,
    segment: &Segment,
    costs: &TokenCosts,
) -> (u8, QuantizedBlock, [u8; 16], RdScore) {
    let predictions = predict_4x4(&context.edge);
    let modes = eight_nearest_modes(source, &predictions, context.mode_costs, segment);
    let lanes = gather(std::array::from_fn(|n| &predictions[usize::from(modes[n]) % 10]));
    let target = splat(source);
    let coefficients = forward(&target, &lanes);
    let (levels, decoded) = quantize(&coefficients, &segment.luma);
    let reconstructed = inverse(&decoded, &lanes);
    let errors = squared_errors(&target, &reconstructed).to_array();
    let textures = (texture_energy(&reconstructed) - i16x8::splat(source_texture)).abs().to_array();
    let nonzero = NonzeroCounts::of(&levels);
    let (counts, ac_counts) = (nonzero.coded.to_array(), nonzero.ac.to_array());
    let (lambda, lambda_texture) = (segment.lambda_intra4 as i32, segment.lambda_texture as i32);
    let (mut distortion, mut penalty, mut floors) = ([0; 8], [0; 8], [0; 8]);
    for lane in 0..8 {
        let is_nearly_flat = modes[lane] > 0 && ac_counts[lane] <= 3;
        penalty[lane] = if is_nearly_flat { FLATNESS_PENALTY as i32 } else { 0 };
        distortion[lane] = errors[lane] + ((lambda_texture * i32::from(textures[lane]) + 128) >> 8);
        let header = i32::from(context.mode_costs[usize::from(modes[lane]) % 10]);
        floors[lane] = distortion[lane] * 256 + (penalty[lane] + header) * lambda;
    }
    // The most promising first: then most others can be excluded without counting their bits.
    let mut first = 0;
    for lane in 1..8 {
        if floors[lane] < floors[first] {
            first = lane;
        }
    }
    let bits = |lane: usize| costs.block(3, 0, context.nonzero, counts[lane] as usize, |n| levels[n].as_array()[lane]);
    let mut best = (bits(first), first);
    let mut least = floors[first] + best.0 * lambda;
    for (lane, floor) in floors.into_iter().enumerate() {
        if lane != first && floor < least {
            let bits = bits(lane);
            if floor + bits * lambda < least {
                least = floor + bits * lambda;
                best = (bits, lane);
            }
        }
    }
    let (bits, lane) = best;
    let block = QuantizedBlock { levels: block_of(&levels, lane), coded: counts[lane] as usize };
    let score = RdScore {
        distortion: distortion[lane].into(),
        bits: i64::from(penalty[lane] + bits),
        header: context.mode_costs[usize::from(modes[lane]) % 10].into(),
    };
    (modes[lane], block, pixels_of(&reconstructed, lane), score)
}

/// Drops the two modes with the largest absolute differences: a vector has eight lanes, and these are hardly ever chosen.
fn eight_nearest_modes(
    source: &[u8; 16],
    predictions: &[[u8; 16]; 10],
    mode_costs: &[u16; 10],
    segment: &Segment,
) -> [u8; 8] {
    let step = u32::from(segment.luma.step[1].unsigned_abs());
    let mut distances = [0; 10];
    for (mode, prediction) in predictions.iter().enumerate() {
        let difference: u32 = source.iter().zip(prediction).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        distances[mode] = difference + ((u32::from(mode_costs[mode]) * step) >> 9);
    }
    let (mut worst, mut second) = (0, 1);
    if distances[1] > distances[0] {
        (worst, second) = (1, 0);
    }
    for mode in 2..10 {
        if distances[mode] > distances[worst] {
            (worst, second) = (mode, worst);
        } else if distances[mode] > distances[second] {
            second = mode;
        }
    }
    let (low, high) = (worst.min(second) as u8, worst.max(second) as u8);
    let mut modes = [0, 1, 2, 3, 4, 5, 6, 7];
    for mode in &mut modes {
        *mode += u8::from(*mode >= low);
        *mode += u8::from(*mode >= high);
    }
    modes
}

/// A macroblock's reconstructed luma with its neighbouring pixels, filled block by block.
struct Window {
    /// A row above, a column to the left, four pixels to the right of the row above.
    pixels: [[u8; 21]; 17],
}

impl Window {
    fn new(context: &Context) -> Self {
        let neighbours = context.luma();
        let (above, left) = neighbours.filled();
        let mut pixels = [[0; 21]; 17];
        pixels[0][0] = neighbours.corner;
        pixels[0][1..17].copy_from_slice(&above);
        pixels[0][17..].copy_from_slice(&context.above_right());
        (0..16).for_each(|y| pixels[y + 1][0] = left[y]);
        Self { pixels }
    }

    /// Returns the pixels around a block: the left side from the bottom, the corner, eight pixels above. Right of the last column
    /// nothing is reconstructed yet: there the row above the macroblock is used (RFC 6386, section 12.3).
    fn edge(&self, x: usize, y: usize) -> [u8; 13] {
        let p = &self.pixels;
        let above = &p[y * 4];
        let mut edge = [0; 13];
        for (n, pixel) in edge[..4].iter_mut().enumerate() {
            *pixel = p[y * 4 + 4 - n][x * 4];
        }
        edge[4..9].copy_from_slice(&above[x * 4..x * 4 + 5]);
        let right = if x < 3 { &above[x * 4 + 5..x * 4 + 9] } else { &p[0][17..] };
        edge[9..].copy_from_slice(right);
        edge
    }

    fn paint(&mut self, x: usize, y: usize, block: &[u8; 16]) {
        for (n, row) in block.chunks_exact(4).enumerate() {
            self.pixels[y * 4 + n + 1][x * 4 + 1..][..4].copy_from_slice(row);
        }
    }
}
