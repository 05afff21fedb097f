//! A whole picture, from pixels to a file.

use crate::{
    analysis::Analysis,
    bits::Bits,
    context::Context,
    cost::{Costs, small_mode_bits, small_mode_likelihoods},
    decide::{Decider, Luma, Modes},
    macroblock::Source,
    quantizer::{Chroma, Segment},
    tokens::{Likelihoods, Tokens},
    yuv::Planes,
};

/// The format has 14 bits for a side.
const LONGEST_SIDE: usize = 16_383;
/// In 256ths of a bit: the format has 19 bits for the length of the modes.
const MODES_LIMIT: i64 = (512 * 1024 - 2048) << 11;

/// What kind of file it is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// 0 to 100.
    pub quality: f32,
    /// Whether colour is stored so that it is sharp when a decoder has enlarged it. Takes a few more bytes.
    pub sharp_yuv: bool,
}

/// The file, or nothing if the format has no room for such a picture. `rgb` has `width * height * 3` bytes.
pub fn encode(rgb: &[u8], width: usize, height: usize, settings: Settings) -> Option<Vec<u8>> {
    let Settings { quality, sharp_yuv } = settings;
    let fits = (1..=LONGEST_SIDE).contains(&width) && (1..=LONGEST_SIDE).contains(&height);
    if !fits || rgb.len() != width * height * 3 {
        return None;
    }
    let planes = Planes::of(rgb, width, height, sharp_yuv);
    let analysis = Analysis::of(&planes);
    let chroma = Chroma::new(analysis.colour_ease);
    let segments = Segments::new(&analysis, quality, chroma);
    let mut header_limit = 256 * 16 * 16;
    loop {
        let frame = Frame::code(&planes, segments.clone(), quality, header_limit);
        if frame.header_cost > MODES_LIMIT && header_limit > 0 {
            header_limit /= 2;
            continue;
        }
        let likelihoods = frame.tokens.likelihoods();
        let head = frame.head(&likelihoods, chroma, planes.columns);
        return file(width, height, &head, &frame.tokens.write(&likelihoods));
    }
}

/// Which macroblocks are coded how coarsely.
#[derive(Clone)]
struct Segments {
    kinds: Vec<Segment>,
    map: Vec<u8>,
}

impl Segments {
    /// Segments that would be coded alike are one.
    fn new(analysis: &Analysis, quality: f32, chroma: Chroma) -> Self {
        let mut kinds: Vec<Segment> = Vec::new();
        let numbers: Vec<u8> = analysis
            .segments
            .iter()
            .map(|character| {
                let segment = Segment::new(quality, *character, chroma);
                let is_alike = |other: &Segment| (other.quantizer, other.filter) == (segment.quantizer, segment.filter);
                let known = kinds.iter().position(is_alike);
                known.unwrap_or_else(|| {
                    kinds.push(segment);
                    kinds.len() - 1
                }) as u8
            })
            .collect();
        Self { kinds, map: analysis.map.iter().map(|n| numbers[usize::from(*n)]).collect() }
    }

    /// How likely each branch to a segment is.
    fn likelihoods(&self) -> [u8; 3] {
        let mut counts = [0_u64; 4];
        self.map.iter().for_each(|segment| counts[usize::from(*segment)] += 1);
        let [a, b, c, d] = counts;
        let likelihood = |first: u64, second: u64| match first + second {
            0 => 255,
            all => ((255 * first + all / 2) / all) as u8,
        };
        [likelihood(a + b, c + d), likelihood(a, b), likelihood(c, d)]
    }
}

/// A coded picture that is still to be written.
struct Frame {
    segments: Segments,
    modes: Vec<Modes>,
    header_cost: i64,
    tokens: Tokens,
}

impl Frame {
    fn code(planes: &Planes, mut segments: Segments, quality: f32, header_limit: i64) -> Self {
        let count = planes.columns * planes.rows;
        let decider = Decider { quality, header_limit };
        let mut tokens = Tokens::new(count * 64);
        let mut costs = Costs::of(&Likelihoods::standard());
        let mut context = Context::new(planes.columns);
        let mut modes = Vec::with_capacity(count);
        let mut header_cost = 0;
        // Eight times a picture: what has been met tells what the rest will cost.
        let refresh = (count / 8).max(96);
        for row in 0..planes.rows {
            context.start_row(row);
            for column in 0..planes.columns {
                let n = modes.len();
                if n > 0 && n % refresh == 0 {
                    costs = Costs::of(&tokens.likelihoods());
                }
                let source = Source::read(planes, column, row);
                let segment = &mut segments.kinds[usize::from(segments.map[n])];
                let (chosen, header) = decider.code(&source, segment, &costs, &mut context, &mut tokens);
                modes.push(chosen);
                header_cost += header;
            }
        }
        Self { segments, modes, header_cost, tokens }
    }

    /// Everything but the coefficients.
    fn head(&self, likelihoods: &Likelihoods, chroma: Chroma, columns: usize) -> Vec<u8> {
        let mut bits = Bits::new(self.modes.len());
        bits.number(0, 2); // The standard's colours, clamped.
        let map = self.put_segments(&mut bits);
        bits.number(0, 1); // The normal filter.
        bits.number(self.segments.kinds.iter().map(Segment::final_filter).max().unwrap_or(0) as u32, 6);
        bits.number(0, 3); // Not sharpened,
        bits.number(0, 1); // nor by mode.
        bits.number(0, 2); // One partition.
        bits.number(self.segments.kinds[0].quantizer as u32, 7);
        [0, 0, 0, chroma.dc, chroma.ac].into_iter().for_each(|offset| bits.optional(offset, 4));
        bits.number(0, 1); // Likelihoods are for this frame alone.
        likelihoods.write(&mut bits);
        bits.number(0, 1); // No macroblock is skipped.
        for (n, modes) in self.modes.iter().enumerate() {
            if let Some(map) = map {
                let segment = self.segments.map[n];
                bits.put(segment >= 2, map[0]);
                bits.put(segment & 1 == 1, map[1 + usize::from(segment >= 2)]);
            }
            let above = n.checked_sub(columns).map(|n| &self.modes[n]);
            let left = (n % columns > 0).then(|| &self.modes[n - 1]);
            put_luma(&mut bits, modes, above, left);
            put_colour(&mut bits, modes.colour);
        }
        bits.finish()
    }

    /// Returns the likelihoods of the map, if there is one.
    fn put_segments(&self, bits: &mut Bits) -> Option<[u8; 3]> {
        let kinds = &self.segments.kinds;
        bits.put(kinds.len() > 1, 128);
        if kinds.len() == 1 {
            return None;
        }
        let likelihoods = self.segments.likelihoods();
        bits.number(1, 1); // There is a map,
        bits.number(1, 1); // and there are values,
        bits.number(1, 1); // not offsets.
        let kind = |n: usize| kinds.get(n).unwrap_or(&kinds[0]);
        (0..4).for_each(|n| bits.optional(kind(n).quantizer as i32, 7));
        (0..4).for_each(|n| bits.optional(kind(n).final_filter(), 6));
        for likelihood in likelihoods {
            bits.put(likelihood != 255, 128);
            if likelihood != 255 {
                bits.number(likelihood.into(), 8);
            }
        }
        Some(likelihoods)
    }
}

fn put_luma(bits: &mut Bits, modes: &Modes, above: Option<&Modes>, left: Option<&Modes>) {
    match modes.luma {
        Luma::Large(mode) => {
            bits.put(true, 145);
            let is_sideways = mode == 1 || mode == 3;
            bits.put(is_sideways, 156);
            if is_sideways {
                bits.put(mode == 1, 128);
            } else {
                bits.put(mode == 2, 163);
            }
        }
        Luma::Small(small) => {
            bits.put(false, 145);
            let small_of = |modes: Option<&Modes>, n: usize| match modes.map(|modes| modes.luma) {
                Some(Luma::Small(small)) => small[n],
                Some(Luma::Large(mode)) => mode,
                None => 0,
            };
            for (n, mode) in small.into_iter().enumerate() {
                let above = if n < 4 { small_of(above, n + 12) } else { small[n - 4] };
                let left = if n % 4 == 0 { small_of(left, n + 3) } else { small[n - 1] };
                let likelihoods = small_mode_likelihoods(above.into(), left.into());
                small_mode_bits(mode.into()).iter().for_each(|(branch, way)| bits.put(*way, likelihoods[*branch]));
            }
        }
    }
}

fn put_colour(bits: &mut Bits, mode: u8) {
    bits.put(mode != 0, 142);
    if mode != 0 {
        bits.put(mode != 2, 114);
        if mode != 2 {
            bits.put(mode != 3, 183);
        }
    }
}

fn file(width: usize, height: usize, head: &[u8], coefficients: &[u8]) -> Option<Vec<u8>> {
    if head.len() >= 1 << 19 {
        return None;
    }
    let length = 10 + head.len() + coefficients.len();
    let padding = length % 2;
    let mut file = Vec::with_capacity(20 + length + padding);
    let size = |bytes: usize| (bytes as u32).to_le_bytes();
    file.extend(b"RIFF");
    file.extend(size(12 + length + padding));
    file.extend(b"WEBPVP8 ");
    file.extend(size(length + padding));
    // A key frame that is shown, of the normal kind.
    let tag = 1 << 4 | (head.len() as u32) << 5;
    file.extend(&tag.to_le_bytes()[..3]);
    file.extend([0x9d, 0x01, 0x2a]);
    file.extend((width as u16).to_le_bytes());
    file.extend((height as u16).to_le_bytes());
    file.extend(head);
    file.extend(coefficients);
    file.extend(std::iter::repeat_n(0, padding));
    Some(file)
}
