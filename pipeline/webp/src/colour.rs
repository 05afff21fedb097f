//! A macroblock's colour, both planes with one mode.

use wide::i16x8;

use crate::{
    context::Context,
    cost::{Costs, FIXED},
    lanes::{Extent, difference, distance, forward, inverse, pixels_of, quantize},
    macroblock::Source,
    predict::{CHROMA, large},
    price::{FLATNESS_PENALTY, Levels, Price, all_blocks, nearest_two},
    quantizer::Segment,
};

/// Above this nothing is left over that could be seen.
const DIFFUSION_QUALITY: f32 = 98.0;

/// It, coded one way.
pub(crate) struct Colour {
    pub(crate) mode: u8,
    pub(crate) header: i64,
    pub(crate) blocks: [Levels; 8],
    pub(crate) pixels: [[u8; 16]; 8],
    /// What quantizing left over of the means, for the neighbours.
    pub(crate) errors: [[i8; 3]; 2],
}

/// The better of the two likeliest modes.
pub(crate) fn colour(source: &Source, segment: &Segment, costs: &Costs, context: &Context, quality: f32) -> Colour {
    let around = [context.chroma(0), context.chroma(1)];
    let guesses = large([&around[0], &around[1]], &CHROMA);
    let mut best: Option<(i64, Colour)> = None;
    let far = |mode: usize| distance(&source.chroma, &guesses[mode]);
    for mode in nearest_two([far(0), far(1), far(2), far(3)]) {
        let guess = &guesses[mode];
        let mut coefficients = forward(&source.chroma, guess);
        let mut errors = [[0; 3]; 2];
        if quality <= DIFFUSION_QUALITY {
            let mut means = coefficients[0].to_array();
            for plane in 0..2 {
                let (above, left) = (context.above().errors[plane], context.left.errors[plane]);
                errors[plane] = diffuse(&mut means[plane * 4..][..4], segment, above, left);
            }
            coefficients[0] = i16x8::new(means);
        }
        let (levels, decoded) = quantize(&coefficients, &segment.chroma);
        let shown = inverse(&decoded, guess);
        let mut price = Price {
            error: difference(&source.chroma, &shown).reduce_add().into(),
            bits: 0,
            header: FIXED.colour[mode],
        };
        if best.as_ref().is_some_and(|(least, _)| price.at(segment.colour) >= *least) {
            continue;
        }
        let extent = Extent::of(&levels);
        if mode > 0 && extent.details.reduce_add() <= 2 {
            price.bits += FLATNESS_PENALTY * 8;
        }
        let blocks = all_blocks(&levels, extent.coded);
        let (mut above, mut left) = (context.above().coded, context.left.coded);
        for (n, block) in blocks.iter().enumerate() {
            let (x, y) = (4 + n / 4 * 2 + n % 2, 4 + n / 4 * 2 + n / 2 % 2);
            price.bits +=
                i64::from(costs.block(2, 0, usize::from(above[x] + left[y]), block.coded, |n| block.levels[n]));
            above[x] = u8::from(block.coded > 0);
            left[y] = above[x];
        }
        let total = price.at(segment.colour);
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            let pixels = std::array::from_fn(|n| pixels_of(&shown, n));
            best = Some((total, Colour { mode: mode as u8, header: price.header, blocks, pixels, errors }));
        }
    }
    best.map_or_else(|| unreachable!("the first guess is always taken"), |(_, colour)| colour)
}

/// Quantizes the means of four blocks, giving what is left over of each to the next. Returns what is left at the end.
fn diffuse(means: &mut [i16], segment: &Segment, above: [i8; 2], left: [i8; 2]) -> [i8; 3] {
    let quantize = |mean: &mut i16, from_above: i32, from_left: i32| {
        let wanted = i32::from(*mean) + ((7 * from_above + 8 * from_left) >> 3);
        let shown = segment.chroma.level(wanted, 0) * i32::from(segment.chroma.step[0]);
        *mean = shown as i16;
        (wanted - shown) >> 1
    };
    let [above, left] = [above, left].map(|errors| errors.map(i32::from));
    let first = quantize(&mut means[0], above[0], left[0]);
    let second = quantize(&mut means[1], above[1], first);
    let third = quantize(&mut means[2], first, left[1]);
    let fourth = quantize(&mut means[3], second, third);
    [second, third, fourth].map(|error| error.clamp(-127, 127) as i8)
}
