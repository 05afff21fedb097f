//! A macroblock's brightness as sixteen blocks, each guessed from those before it.

use wide::i16x8;

use crate::{
    context::Context,
    cost::{Costs, FIXED},
    decide::{Coded, Luma},
    lanes::{Extent, block_of, difference, forward, gather, inverse, pixels_of, quantize, splat, texture},
    macroblock::Source,
    predict::small,
    price::{FLATNESS_PENALTY, Levels, Price},
    quantizer::Segment,
};

/// The sixteen blocks, if they are better than the whole. Their modes may cost so much and no more.
pub(crate) fn parts(
    source: &Source,
    textures: &[i16x8; 2],
    segment: &Segment,
    costs: &Costs,
    context: &Context,
    whole: &Coded,
    header_limit: i64,
) -> Option<Coded> {
    let limit = whole.price.at(segment.between);
    let mut total = Price { header: FIXED.is_small, ..Price::default() };
    let mut header = 0;
    let mut modes = [0_u8; 16];
    let mut blocks = [Levels::default(); 16];
    let mut pixels = [[0; 16]; 16];
    let mut canvas = Canvas::new(context);
    let (mut above, mut left) = (context.above().coded, context.left.coded);
    let textures = [textures[0].to_array(), textures[1].to_array()];
    for n in 0..16 {
        let (x, y) = (n % 4, n / 4);
        let mode_above = if y > 0 { modes[n - 4] } else { context.above().modes[x] };
        let mode_left = if x > 0 { modes[n - 1] } else { context.left.modes[y] };
        let headers = &FIXED.small[usize::from(mode_above)][usize::from(mode_left)];
        let near = usize::from(above[x] + left[y]);
        let (mode, block, shown, price) =
            part(&source.blocks[n], textures[n / 8][n % 8], &canvas.edge(x, y), segment, costs, headers, near);
        total.add(price);
        header += price.header;
        if total.at(segment.between) >= limit || header > header_limit {
            return None;
        }
        canvas.paint(x, y, &shown);
        (modes[n], blocks[n], pixels[n]) = (mode, block, shown);
        above[x] = u8::from(block.coded > 0);
        left[y] = above[x];
    }
    Some(Coded { luma: Luma::Small(modes), price: total, means: Levels::default(), blocks, pixels })
}

/// The best of ten guesses at one block.
fn part(
    source: &[u8; 16],
    source_texture: i16,
    edge: &[u8; 13],
    segment: &Segment,
    costs: &Costs,
    headers: &[u16; 10],
    near: usize,
) -> (u8, Levels, [u8; 16], Price) {
    let guesses = small(edge);
    let modes = likeliest(source, &guesses, headers, segment);
    let lanes = gather(std::array::from_fn(|n| &guesses[usize::from(modes[n]) % 10]));
    let target = splat(source);
    let coefficients = forward(&target, &lanes);
    let (levels, decoded) = quantize(&coefficients, &segment.luma);
    let shown = inverse(&decoded, &lanes);
    let errors = difference(&target, &shown).to_array();
    let textures = (texture(&shown) - i16x8::splat(source_texture)).abs().to_array();
    let extent = Extent::of(&levels);
    let (counts, details) = (extent.coded.to_array(), extent.details.to_array());
    let (per_bit, per_texture) = (segment.small as i32, segment.texture as i32);
    let (mut likeness, mut overhead, mut floors) = ([0; 8], [0; 8], [0; 8]);
    for lane in 0..8 {
        let is_nearly_flat = modes[lane] > 0 && details[lane] <= 3;
        overhead[lane] = if is_nearly_flat { FLATNESS_PENALTY as i32 } else { 0 };
        likeness[lane] = errors[lane] + ((per_texture * i32::from(textures[lane]) + 128) >> 8);
        let header = i32::from(headers[usize::from(modes[lane]) % 10]);
        floors[lane] = likeness[lane] * 256 + (overhead[lane] + header) * per_bit;
    }
    // The most promising first: it spares counting the bits of most others.
    let mut first = 0;
    for lane in 1..8 {
        if floors[lane] < floors[first] {
            first = lane;
        }
    }
    let bits = |lane: usize| costs.block(3, 0, near, counts[lane] as usize, |n| levels[n].as_array()[lane]);
    let mut best = (bits(first), first);
    let mut least = floors[first] + best.0 * per_bit;
    for (lane, floor) in floors.into_iter().enumerate() {
        if lane != first && floor < least {
            let bits = bits(lane);
            if floor + bits * per_bit < least {
                least = floor + bits * per_bit;
                best = (bits, lane);
            }
        }
    }
    let (bits, lane) = best;
    let block = Levels { levels: block_of(&levels, lane), coded: counts[lane] as usize };
    let price = Price {
        error: likeness[lane].into(),
        bits: i64::from(overhead[lane] + bits),
        header: headers[usize::from(modes[lane]) % 10].into(),
    };
    (modes[lane], block, pixels_of(&shown, lane), price)
}

/// Eight of ten modes: a vector has room for no more, and the last two are hardly ever chosen.
fn likeliest(source: &[u8; 16], guesses: &[[u8; 16]; 10], headers: &[u16; 10], segment: &Segment) -> [u8; 8] {
    let step = u32::from(segment.luma.step[1].unsigned_abs());
    let mut far = [0; 10];
    for (mode, guess) in guesses.iter().enumerate() {
        let difference: u32 = source.iter().zip(guess).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        far[mode] = difference + ((u32::from(headers[mode]) * step) >> 9);
    }
    let (mut worst, mut second) = (0, 1);
    if far[1] > far[0] {
        (worst, second) = (1, 0);
    }
    for mode in 2..10 {
        if far[mode] > far[worst] {
            (worst, second) = (mode, worst);
        } else if far[mode] > far[second] {
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

/// A macroblock's brightness with what is around it, as it is painted block by block.
struct Canvas {
    /// A row above, a column to the left, four pixels to the right of the row above.
    pixels: [[u8; 21]; 17],
}

impl Canvas {
    fn new(context: &Context) -> Self {
        let around = context.luma();
        let (above, left) = around.filled();
        let mut pixels = [[0; 21]; 17];
        pixels[0][0] = around.corner;
        pixels[0][1..17].copy_from_slice(&above);
        pixels[0][17..].copy_from_slice(&context.above_right());
        (0..16).for_each(|y| pixels[y + 1][0] = left[y]);
        Self { pixels }
    }

    /// Around a block: the left side from below, the corner, the eight pixels above. What is to the right of the last
    /// column has not been painted yet: there the row above the macroblock counts.
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
