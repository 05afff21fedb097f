//! How each macroblock is coded: every guess is tried to the end, and the best of size and likeness stays.

use crate::{
    colour::{Colour, colour},
    context::{Context, Side},
    cost::Costs,
    lanes::texture,
    macroblock::Source,
    parts::parts,
    price::{Levels, Price},
    quantizer::Segment,
    tokens::Tokens,
    whole::whole,
};

/// Which guesses a macroblock is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) luma: Luma,
    pub(crate) colour: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Luma {
    Large(u8),
    Small([u8; 16]),
}

/// A macroblock's brightness, coded one way.
pub(crate) struct Coded {
    pub(crate) luma: Luma,
    pub(crate) price: Price,
    pub(crate) means: Levels,
    pub(crate) blocks: [Levels; 16],
    pub(crate) pixels: [[u8; 16]; 16],
}

/// What stays the same for a whole picture.
pub(crate) struct Decider {
    pub(crate) quality: f32,
    /// What the modes of one macroblock's small blocks may cost.
    pub(crate) header_limit: i64,
}

impl Decider {
    /// Codes the macroblock that the context stands at. Returns its modes and what they cost.
    pub(crate) fn code(
        &self,
        source: &Source,
        segment: &mut Segment,
        costs: &Costs,
        context: &mut Context,
        tokens: &mut Tokens,
    ) -> (Modes, i64) {
        let textures = [texture(&source.luma[0]), texture(&source.luma[1])];
        let whole = whole(source, &textures, segment, costs, context);
        let luma = parts(source, &textures, segment, costs, context, &whole, self.header_limit).unwrap_or(whole);
        let colour = colour(source, segment, costs, context, self.quality);
        let modes = Modes { luma: luma.luma, colour: colour.mode };
        let header = luma.price.header + colour.header;
        leave(context, &luma, &colour, tokens);
        (modes, header)
    }
}

/// Writes the tokens, and leaves for the next macroblocks what they need.
fn leave(context: &mut Context, luma: &Coded, colour: &Colour, tokens: &mut Tokens) {
    let (mut above, mut left) = (context.above().coded, context.left.coded);
    let mut put = |kind: usize, first: usize, x: usize, y: usize, block: &Levels| {
        tokens.block(kind, first, usize::from(above[x] + left[y]), &block.levels, block.coded);
        above[x] = u8::from(block.coded > first);
        left[y] = above[x];
    };
    let is_large = matches!(luma.luma, Luma::Large(_));
    if is_large {
        put(1, 0, 8, 8, &luma.means);
    }
    let (kind, first) = if is_large { (0, 1) } else { (3, 0) };
    luma.blocks.iter().enumerate().for_each(|(n, block)| put(kind, first, n % 4, n / 4, block));
    for (n, block) in colour.blocks.iter().enumerate() {
        put(2, 0, 4 + n / 4 * 2 + n % 2, 4 + n / 4 * 2 + n / 2 % 2, block);
    }

    let modes = match luma.luma {
        Luma::Large(mode) => [mode; 16],
        Luma::Small(modes) => modes,
    };
    let errors = |of: fn([i8; 3]) -> [i8; 2]| colour.errors.map(of);
    let below = Side {
        y: std::array::from_fn(|n| luma.pixels[12 + n / 4][12 + n % 4]),
        uv: [0, 4].map(|plane| std::array::from_fn(|n| colour.pixels[plane + 2 + n / 4][12 + n % 4])),
        coded: above,
        modes: std::array::from_fn(|n| modes[12 + n]),
        errors: errors(|[_, third, fourth]| [third, fourth - ((3 * i32::from(fourth)) >> 2) as i8]),
    };
    let right = Side {
        y: std::array::from_fn(|n| luma.pixels[n / 4 * 4 + 3][n % 4 * 4 + 3]),
        uv: [0, 4].map(|plane| std::array::from_fn(|n| colour.pixels[plane + n / 4 * 2 + 1][n % 4 * 4 + 3])),
        coded: left,
        modes: std::array::from_fn(|n| modes[n * 4 + 3]),
        errors: errors(|[second, _, fourth]| [second, ((3 * i32::from(fourth)) >> 2) as i8]),
    };
    context.advance(below, right);
}
