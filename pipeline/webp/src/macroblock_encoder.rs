//! Encoding of one macroblock: prediction modes are tried in full, and the best rate-distortion score wins.

use crate::{
    bit_cost::TokenCosts,
    chroma::{ChromaCandidate, search_chroma},
    context::{Border, Context},
    intra4::{Limits, search_intra4},
    intra16::search_intra16,
    quantizer::Segment,
    rd_score::{QuantizedBlock, RdScore},
    simd::texture_energy,
    source::SourceMacroblock,
    tokens::Tokens,
};

/// The prediction modes of a macroblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) luma: LumaMode,
    pub(crate) chroma: u8,
}

/// Luma prediction: one mode for 16x16 pixels, or one for each 4x4 block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LumaMode {
    Intra16(u8),
    Intra4([u8; 16]),
}

/// A macroblock's luma, encoded with one choice of modes.
pub(crate) struct LumaCandidate {
    pub(crate) mode: LumaMode,
    pub(crate) score: RdScore,
    /// The Y2 block: the DC coefficients of the sixteen blocks. Only for [`LumaMode::Intra16`].
    pub(crate) y2: QuantizedBlock,
    pub(crate) blocks: [QuantizedBlock; 16],
    pub(crate) pixels: [[u8; 16]; 16],
}

/// Encodes macroblocks with the settings of one image.
pub(crate) struct MacroblockEncoder {
    pub(crate) quality: f32,
    /// Largest cost of a macroblock's 4x4 modes, in 256ths of a bit.
    pub(crate) header_limit: i64,
}

impl MacroblockEncoder {
    /// Encodes the macroblock at the context's position. Returns its modes and their cost in 256ths of a bit.
    pub(crate) fn encode(
        &self,
        source: &SourceMacroblock,
        segment: &mut Segment,
        costs: &TokenCosts,
        context: &mut Context,
        tokens: &mut Tokens,
    ) -> (Modes, i64) {
        let textures = [texture_energy(&source.luma[0]), texture_energy(&source.luma[1])];
        let intra16 = search_intra16(source, &textures, segment, costs, context);
        let limits = Limits { score: intra16.score.weighted(segment.lambda_mode), header: self.header_limit };
        let luma = search_intra4(source, &textures, segment, costs, context, limits).unwrap_or(intra16);
        let chroma = search_chroma(source, segment, costs, context, self.quality);
        let modes = Modes { luma: luma.mode, chroma: chroma.mode };
        let header = luma.score.header + chroma.header;
        commit(context, &luma, &chroma, tokens);
        (modes, header)
    }
}

/// Records the tokens and updates the context for the next macroblocks.
fn commit(context: &mut Context, luma: &LumaCandidate, chroma: &ChromaCandidate, tokens: &mut Tokens) {
    let (mut above, mut left) = (context.above().coded, context.left.coded);
    let mut put = |kind: usize, first: usize, x: usize, y: usize, block: &QuantizedBlock| {
        tokens.put_block(kind, first, usize::from(above[x] + left[y]), &block.levels, block.coded);
        above[x] = u8::from(block.coded > first);
        left[y] = above[x];
    };
    let is_intra16 = matches!(luma.mode, LumaMode::Intra16(_));
    if is_intra16 {
        put(1, 0, 8, 8, &luma.y2);
    }
    let (kind, first) = if is_intra16 { (0, 1) } else { (3, 0) };
    luma.blocks.iter().enumerate().for_each(|(n, block)| put(kind, first, n % 4, n / 4, block));
    for (n, block) in chroma.blocks.iter().enumerate() {
        put(2, 0, 4 + n / 4 * 2 + n % 2, 4 + n / 4 * 2 + n / 2 % 2, block);
    }

    let modes = match luma.mode {
        LumaMode::Intra16(mode) => [mode; 16],
        LumaMode::Intra4(modes) => modes,
    };
    let errors = |of: fn([i8; 3]) -> [i8; 2]| chroma.errors.map(of);
    let below = Border {
        y: std::array::from_fn(|n| luma.pixels[12 + n / 4][12 + n % 4]),
        uv: [0, 4].map(|plane| std::array::from_fn(|n| chroma.pixels[plane + 2 + n / 4][12 + n % 4])),
        coded: above,
        modes: std::array::from_fn(|n| modes[12 + n]),
        errors: errors(|[_, third, fourth]| [third, fourth - ((3 * i32::from(fourth)) >> 2) as i8]),
    };
    let right = Border {
        y: std::array::from_fn(|n| luma.pixels[n / 4 * 4 + 3][n % 4 * 4 + 3]),
        uv: [0, 4].map(|plane| std::array::from_fn(|n| chroma.pixels[plane + n / 4 * 2 + 1][n % 4 * 4 + 3])),
        coded: left,
        modes: std::array::from_fn(|n| modes[n * 4 + 3]),
        errors: errors(|[second, _, fourth]| [second, ((3 * i32::from(fourth)) >> 2) as i8]),
    };
    context.advance(below, right);
}
