//! A macroblock's brightness guessed as a whole.

use wide::i16x8;

use crate::{
    context::Context,
    cost::{Costs, FIXED},
    decide::{Coded, Luma},
    lanes::{Extent, Lanes, difference, distance, forward, inverse, pixels_of, quantize, texture},
    macroblock::Source,
    predict::{LUMA, large},
    price::{Levels, Price, all_blocks, nearest_two},
    quantizer::Segment,
};

/// A second guess that is farther away by one in so many is not tried.
const FAR: i32 = 4;

/// The better of the two likeliest modes.
pub(crate) fn whole(
    source: &Source,
    textures: &[i16x8; 2],
    segment: &mut Segment,
    costs: &Costs,
    context: &Context,
) -> Coded {
    let around = context.luma();
    let guesses = [large([&around, &around], &LUMA[0]), large([&around, &around], &LUMA[1])];
    let is_flat = source.is_flat();
    let far = |mode: usize| distance(&source.luma[0], &guesses[0][mode]) + distance(&source.luma[1], &guesses[1][mode]);
    let distances = [far(0), far(1), far(2), far(3)];
    let [near, next] = nearest_two(distances);
    let attempt = |mode: usize| {
        let guesses = [&guesses[0][mode], &guesses[1][mode]];
        let mut whole = Whole::new(mode, source, textures, guesses, segment, is_flat);
        whole.price.bits = whole.bits(costs, context);
        whole
    };
    let mut chosen = attempt(near);
    if distances[next] < distances[near] + distances[near] / FAR {
        let other = attempt(next);
        if other.price.at(segment.large) < chosen.price.at(segment.large) {
            chosen = other;
        }
    }
    let blocks = chosen.blocks();
    let has_means_only = chosen.means.coded > 0 && blocks.iter().all(|block| block.coded <= 1);
    if has_means_only && chosen.price.error > segment.least_error {
        let [a, b, c] = [1, 2, 4].map(|n: usize| i32::from(chosen.means.levels[n].unsigned_abs()));
        segment.edge = segment.edge.max(a).max(b).max(c);
    }
    Coded {
        luma: Luma::Large(chosen.mode as u8),
        price: chosen.price,
        means: chosen.means,
        blocks,
        pixels: std::array::from_fn(|n| pixels_of(&chosen.pixels[n / 8], n % 8)),
    }
}

/// One of them.
struct Whole {
    mode: usize,
    price: Price,
    means: Levels,
    levels: [Lanes; 2],
    coded: [i16x8; 2],
    pixels: [Lanes; 2],
}

impl Whole {
    fn new(
        mode: usize,
        source: &Source,
        textures: &[i16x8; 2],
        guesses: [&Lanes; 2],
        segment: &Segment,
        is_flat: bool,
    ) -> Self {
        let mut coefficients = [forward(&source.luma[0], guesses[0]), forward(&source.luma[1], guesses[1])];
        let (means, decoded_means) =
            code_means(&coefficients[0][0].to_array(), &coefficients[1][0].to_array(), segment);
        let mut error = 0;
        let mut texture_error = 0;
        let mut levels = [[i16x8::ZERO; 16]; 2];
        let mut pixels = levels;
        for half in 0..2 {
            coefficients[half][0] = i16x8::ZERO;
            let (quantized, mut decoded) = quantize(&coefficients[half], &segment.luma);
            decoded[0] = i16x8::new(std::array::from_fn(|n| decoded_means[half * 8 + n]));
            levels[half] = quantized;
            pixels[half] = inverse(&decoded, guesses[half]);
            error += i64::from(difference(&source.luma[half], &pixels[half]).reduce_add());
            texture_error += i64::from((texture(&pixels[half]) - textures[half]).abs().reduce_add());
        }
        let coded = [Extent::of(&levels[0]).coded, Extent::of(&levels[1]).coded];
        error += (segment.texture * texture_error + 128) >> 8;
        if is_flat && coded.iter().all(|half| half.reduce_max() == 0) {
            error *= 2;
        }
        let price = Price { error, bits: 0, header: FIXED.large[mode] };
        Self { mode, price, means, levels, coded, pixels }
    }

    fn blocks(&self) -> [Levels; 16] {
        let halves: [[Levels; 8]; 2] = [0, 1].map(|half| all_blocks(&self.levels[half], self.coded[half]));
        std::array::from_fn(|n| halves[n / 8][n % 8])
    }

    fn bits(&self, costs: &Costs, context: &Context) -> i64 {
        let (mut above, mut left) = (context.above().coded, context.left.coded);
        let near = usize::from(above[8] + left[8]);
        let mut bits = costs.block(1, 0, near, self.means.coded, |n| self.means.levels[n]);
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

/// The means of sixteen blocks as a block of their own: its levels, and the means a decoder will make of them.
fn code_means(upper: &[i16; 8], lower: &[i16; 8], segment: &Segment) -> (Levels, [i16; 16]) {
    let mean = |n: usize| i32::from(if n < 8 { upper[n] } else { lower[n - 8] });
    let mut t = [0; 16];
    for row in 0..4 {
        let [p0, p1, p2, p3] = [0, 1, 2, 3].map(|n| mean(row * 4 + n));
        let (a0, a1, a2, a3) = (p0 + p2, p1 + p3, p1 - p3, p0 - p2);
        t[row * 4..][..4].copy_from_slice(&[a0 + a1, a3 + a2, a3 - a2, a0 - a1]);
    }
    let mut levels = [0_i16; 16];
    let mut c = [0; 16];
    for n in 0..4 {
        let (a0, a1, a2, a3) = (t[n] + t[8 + n], t[4 + n] + t[12 + n], t[4 + n] - t[12 + n], t[n] - t[8 + n]);
        for (row, value) in [a0 + a1, a3 + a2, a3 - a2, a0 - a1].into_iter().enumerate() {
            let at = row * 4 + n;
            let side = usize::from(at > 0);
            let level = segment.means.level(value >> 1, side);
            levels[at] = level as i16;
            c[at] = level * i32::from(segment.means.step[side]);
        }
    }
    let coded = crate::ZIGZAG.iter().rposition(|place| levels[*place] != 0).map_or(0, |n| n + 1);

    let mut t = [0; 16];
    for n in 0..4 {
        let (a0, a1, a2, a3) = (c[n] + c[12 + n], c[4 + n] + c[8 + n], c[4 + n] - c[8 + n], c[n] - c[12 + n]);
        (t[n], t[8 + n], t[4 + n], t[12 + n]) = (a0 + a1, a0 - a1, a3 + a2, a3 - a2);
    }
    let mut means = [0_i16; 16];
    for row in 0..4 {
        let [p0, p1, p2, p3] = [0, 1, 2, 3].map(|n| t[row * 4 + n]);
        let (a0, a1, a2, a3) = (p0 + 3 + p3, p1 + p2, p1 - p2, p0 + 3 - p3);
        let values = [a0 + a1, a3 + a2, a0 - a1, a3 - a2];
        (0..4).for_each(|n| means[row * 4 + n] = (values[n] >> 3) as i16);
    }
    (Levels { levels, coded }, means)
}
