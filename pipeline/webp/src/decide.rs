//! How each macroblock is coded: every guess is tried to the end, and the best of size and likeness stays.

use wide::i16x8;

use crate::{
    context::{Context, Side},
    cost::{Costs, FIXED},
    lanes::{
        Extent, Lanes, block_of, difference, distance, forward, gather, inverse, pixels_of, quantize, splat, texture,
    },
    macroblock::Source,
    predict::{CHROMA, LUMA, large, small},
    quantizer::Segment,
    tokens::Tokens,
};

/// A bit or so for every block that is nearly flat and yet guessed in a complicated way.
const FLATNESS_PENALTY: i64 = 140;
/// Above this nothing is left over that could be seen.
const DIFFUSION_QUALITY: u8 = 98;

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

/// What is being weighed: all in the same unit.
#[derive(Debug, Clone, Copy, Default)]
struct Price {
    error: i64,
    bits: i64,
    header: i64,
}

impl Price {
    fn at(self, per_bit: i64) -> i64 {
        (self.bits + self.header) * per_bit + 256 * self.error
    }

    fn add(&mut self, other: Self) {
        self.error += other.error;
        self.bits += other.bits;
        self.header += other.header;
    }
}

/// Levels of a block and how many of them are coded.
#[derive(Debug, Clone, Copy, Default)]
struct Levels {
    levels: [i16; 16],
    coded: usize,
}

/// A macroblock's brightness, coded one way.
struct Coded {
    luma: Luma,
    price: Price,
    means: Levels,
    blocks: [Levels; 16],
    pixels: [[u8; 16]; 16],
}

struct Colour {
    mode: u8,
    header: i64,
    blocks: [Levels; 8],
    pixels: [[u8; 16]; 8],
    errors: [[i8; 3]; 2],
}

/// What stays the same for a whole picture.
pub(crate) struct Decider {
    pub(crate) quality: u8,
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
        let whole = self.whole(source, &textures, segment, costs, context);
        let luma = self.parts(source, &textures, segment, costs, context, &whole).unwrap_or(whole);
        let colour = self.colour(source, segment, costs, context);
        let modes = Modes { luma: luma.luma, colour: colour.mode };
        let header = luma.price.header + colour.header;
        leave(context, &luma, &colour, tokens);
        (modes, header)
    }

    fn whole(
        &self,
        source: &Source,
        textures: &[i16x8; 2],
        segment: &mut Segment,
        costs: &Costs,
        context: &Context,
    ) -> Coded {
        let around = context.luma();
        let guesses = [large([&around, &around], &LUMA[0]), large([&around, &around], &LUMA[1])];
        let is_flat = source.is_flat();
        let far =
            |mode: usize| distance(&source.luma[0], &guesses[0][mode]) + distance(&source.luma[1], &guesses[1][mode]);
        let [near, next] = nearest_two([far(0), far(1), far(2), far(3)]);
        let attempt =
            |mode: usize| Whole::new(mode, source, textures, [&guesses[0][mode], &guesses[1][mode]], segment, is_flat);
        let mut attempts = [attempt(near), attempt(next)];
        let mut best = (i64::MAX, 0);
        for (n, attempt) in attempts.iter_mut().enumerate() {
            if attempt.price.at(segment.large) < best.0 {
                attempt.price.bits = attempt.bits(costs, context);
                best = best.min((attempt.price.at(segment.large), n));
            }
        }
        let chosen = &attempts[best.1];
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

    /// As sixteen blocks, if that is better.
    fn parts(
        &self,
        source: &Source,
        textures: &[i16x8; 2],
        segment: &Segment,
        costs: &Costs,
        context: &Context,
        whole: &Coded,
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
            if total.at(segment.between) >= limit || header > self.header_limit {
                return None;
            }
            canvas.paint(x, y, &shown);
            (modes[n], blocks[n], pixels[n]) = (mode, block, shown);
            above[x] = u8::from(block.coded > 0);
            left[y] = above[x];
        }
        Some(Coded { luma: Luma::Small(modes), price: total, means: Levels::default(), blocks, pixels })
    }

    fn colour(&self, source: &Source, segment: &Segment, costs: &Costs, context: &Context) -> Colour {
        let around = [context.chroma(0), context.chroma(1)];
        let guesses = large([&around[0], &around[1]], &CHROMA);
        let mut best: Option<(i64, Colour)> = None;
        let far = |mode: usize| distance(&source.chroma, &guesses[mode]);
        for mode in nearest_two([far(0), far(1), far(2), far(3)]) {
            let guess = &guesses[mode];
            let mut coefficients = forward(&source.chroma, guess);
            let mut errors = [[0; 3]; 2];
            if self.quality <= DIFFUSION_QUALITY {
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
}

/// The two modes that are not so far off as the others.
fn nearest_two(far: [i32; 4]) -> [usize; 2] {
    let mut modes = [0, 1, 2, 3];
    modes.sort_unstable_by_key(|mode| far[*mode]);
    [modes[0], modes[1]]
}

fn all_blocks(levels: &Lanes, coded: i16x8) -> [Levels; 8] {
    let coded = coded.to_array();
    std::array::from_fn(|n| Levels { levels: block_of(levels, n), coded: coded[n] as usize })
}

/// A macroblock's brightness guessed as a whole.
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
