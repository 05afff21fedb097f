//! Encodes an image to a WebP file with one VP8 key frame.

use crate::{
    analysis::Analysis,
    bit_cost::{TokenCosts, intra4_mode_bits, intra4_mode_probabilities},
    bool_encoder::BoolEncoder,
    context::Context,
    macroblock_encoder::{LumaMode, MacroblockEncoder, Modes},
    planes::Planes,
    quantizer::{ChromaOffsets, Segment},
    source::SourceMacroblock,
    tokens::{Probabilities, Tokens},
};

/// The format stores a side in 14 bits.
const MAX_SIDE: usize = 16_383;
/// Largest size of the modes, in 256ths of a bit: the format stores the length of the first partition in 19 bits.
const MODES_LIMIT: i64 = (512 * 1024 - 2048) << 11;

/// The encoder's settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Quality, 0 to 100, on the scale of libwebp.
    pub quality: f32,
    /// Whether chroma is subsampled by sharp YUV conversion. Takes a few more bytes.
    pub sharp_yuv: bool,
}

/// Encodes an image. Returns `None` if the format cannot hold it. `rgb` has `width * height * 3` bytes.
pub fn encode(rgb: &[u8], width: usize, height: usize, settings: Settings) -> Option<Vec<u8>> {
    let Settings { quality, sharp_yuv } = settings;
    let fits = (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
    if !fits || rgb.len() != width * height * 3 {
        return None;
    }
    let planes = Planes::from_rgb(rgb, width, height, sharp_yuv);
    let analysis = Analysis::of(&planes);
    let chroma_offsets = ChromaOffsets::new(analysis.chroma_compressibility);
    let segments = Segments::new(&analysis, quality, chroma_offsets);
    let mut header_limit = 256 * 16 * 16;
    loop {
        let frame = Frame::encode(&planes, segments.clone(), quality, header_limit);
        if frame.header_cost > MODES_LIMIT && header_limit > 0 {
            header_limit /= 2;
            continue;
        }
        let probabilities = frame.tokens.probabilities();
        let header = frame.write_header(&probabilities, chroma_offsets, planes.columns);
        return write_file(width, height, &header, &frame.tokens.write(&probabilities));
    }
}

/// The segments of an image, and the segment of each macroblock.
#[derive(Clone)]
struct Segments {
    segments: Vec<Segment>,
    map: Vec<u8>,
}

impl Segments {
    /// Creates the segments. Those with equal parameters are merged.
    fn new(analysis: &Analysis, quality: f32, chroma_offsets: ChromaOffsets) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let numbers: Vec<u8> = analysis
            .segments
            .iter()
            .map(|susceptibility| {
                let segment = Segment::new(quality, *susceptibility, chroma_offsets);
                let is_equal = |other: &Segment| (other.quantizer, other.filter) == (segment.quantizer, segment.filter);
                let existing = segments.iter().position(is_equal);
                existing.unwrap_or_else(|| {
                    segments.push(segment);
                    segments.len() - 1
                }) as u8
            })
            .collect();
        Self { segments, map: analysis.map.iter().map(|n| numbers[usize::from(*n)]).collect() }
    }

    /// Returns the probabilities of the segment tree (RFC 6386, section 9.3).
    fn probabilities(&self) -> [u8; 3] {
        let mut counts = [0_u64; 4];
        self.map.iter().for_each(|segment| counts[usize::from(*segment)] += 1);
        let [a, b, c, d] = counts;
        let probability = |first: u64, second: u64| match first + second {
            0 => 255,
            all => ((255 * first + all / 2) / all) as u8,
        };
        [probability(a + b, c + d), probability(a, b), probability(c, d)]
    }
}

/// An encoded image before serialization.
struct Frame {
    segments: Segments,
    modes: Vec<Modes>,
    header_cost: i64,
    tokens: Tokens,
}

impl Frame {
    fn encode(planes: &Planes, mut segments: Segments, quality: f32, header_limit: i64) -> Self {
        let count = planes.columns * planes.rows;
        let encoder = MacroblockEncoder { quality, header_limit };
        let mut tokens = Tokens::new(count * 64);
        let mut costs = TokenCosts::of(&Probabilities::default_table());
        let mut context = Context::new(planes.columns);
        let mut modes = Vec::with_capacity(count);
        let mut header_cost = 0;
        // Eight times per image the costs follow the tokens so far.
        let refresh = (count / 8).max(96);
        for row in 0..planes.rows {
            context.start_row(row);
            for column in 0..planes.columns {
                let n = modes.len();
                if n > 0 && n % refresh == 0 {
                    costs = TokenCosts::of(&tokens.probabilities());
                }
                let source = SourceMacroblock::read(planes, column, row);
                let segment = &mut segments.segments[usize::from(segments.map[n])];
                let (chosen, header) = encoder.encode(&source, segment, &costs, &mut context, &mut tokens);
                modes.push(chosen);
                header_cost += header;
            }
        }
        Self { segments, modes, header_cost, tokens }
    }

    /// Writes the first partition: frame header and modes (RFC 6386, sections 9.2 to 11).
    fn write_header(&self, probabilities: &Probabilities, chroma_offsets: ChromaOffsets, columns: usize) -> Vec<u8> {
        let mut bits = BoolEncoder::new(self.modes.len());
        bits.put_literal(0, 2); // Colour space YUV, clamping required.
        let map = self.write_segments(&mut bits);
        bits.put_literal(0, 1); // Normal loop filter.
        let filter = self.segments.segments.iter().map(Segment::final_filter).max().unwrap_or(0);
        bits.put_literal(filter as u32, 6);
        bits.put_literal(0, 3); // Sharpness level 0.
        bits.put_literal(0, 1); // No filter adjustment by mode.
        bits.put_literal(0, 2); // One token partition.
        bits.put_literal(self.segments.segments[0].quantizer as u32, 7);
        let offsets = [0, 0, 0, chroma_offsets.dc, chroma_offsets.ac];
        offsets.into_iter().for_each(|offset| bits.put_optional(offset, 4));
        bits.put_literal(0, 1); // Probabilities apply to this frame only.
        probabilities.write(&mut bits);
        bits.put_literal(0, 1); // No skipped macroblocks.
        for (n, modes) in self.modes.iter().enumerate() {
            if let Some(map) = map {
                let segment = self.segments.map[n];
                bits.put(segment >= 2, map[0]);
                bits.put(segment & 1 == 1, map[1 + usize::from(segment >= 2)]);
            }
            let above = n.checked_sub(columns).map(|n| &self.modes[n]);
            let left = (n % columns > 0).then(|| &self.modes[n - 1]);
            write_luma_mode(&mut bits, modes, above, left);
            write_chroma_mode(&mut bits, modes.chroma);
        }
        bits.finish()
    }

    /// Writes the segment header. Returns the probabilities of the segment map, if there is one.
    fn write_segments(&self, bits: &mut BoolEncoder) -> Option<[u8; 3]> {
        let segments = &self.segments.segments;
        bits.put(segments.len() > 1, 128);
        if segments.len() == 1 {
            return None;
        }
        let probabilities = self.segments.probabilities();
        bits.put_literal(1, 1); // Update the segment map.
        bits.put_literal(1, 1); // Update the segment parameters.
        bits.put_literal(1, 1); // Absolute values, not deltas.
        let segment = |n: usize| segments.get(n).unwrap_or(&segments[0]);
        (0..4).for_each(|n| bits.put_optional(segment(n).quantizer as i32, 7));
        (0..4).for_each(|n| bits.put_optional(segment(n).final_filter(), 6));
        for probability in probabilities {
            bits.put(probability != 255, 128);
            if probability != 255 {
                bits.put_literal(probability.into(), 8);
            }
        }
        Some(probabilities)
    }
}

fn write_luma_mode(bits: &mut BoolEncoder, modes: &Modes, above: Option<&Modes>, left: Option<&Modes>) {
    match modes.luma {
        LumaMode::Intra16(mode) => {
            bits.put(true, 145);
            let is_directional = mode == 1 || mode == 3;
            bits.put(is_directional, 156);
            if is_directional {
                bits.put(mode == 1, 128);
            } else {
                bits.put(mode == 2, 163);
            }
        }
        LumaMode::Intra4(block_modes) => {
            bits.put(false, 145);
            let block_mode = |modes: Option<&Modes>, n: usize| match modes.map(|modes| modes.luma) {
                Some(LumaMode::Intra4(block_modes)) => block_modes[n],
                Some(LumaMode::Intra16(mode)) => mode,
                None => 0,
            };
            for (n, mode) in block_modes.into_iter().enumerate() {
                let above = if n < 4 { block_mode(above, n + 12) } else { block_modes[n - 4] };
                let left = if n % 4 == 0 { block_mode(left, n + 3) } else { block_modes[n - 1] };
                let probabilities = intra4_mode_probabilities(above.into(), left.into());
                let branches = intra4_mode_bits(mode.into()).iter();
                branches.for_each(|(branch, bit)| bits.put(*bit, probabilities[*branch]));
            }
        }
    }
}

fn write_chroma_mode(bits: &mut BoolEncoder, mode: u8) {
    bits.put(mode != 0, 142);
    if mode != 0 {
        bits.put(mode != 2, 114);
        if mode != 2 {
            bits.put(mode != 3, 183);
        }
    }
}

/// Writes the RIFF container (RFC 9649, section 2.5) and the frame tag (RFC 6386, section 9.1).
fn write_file(width: usize, height: usize, header: &[u8], coefficients: &[u8]) -> Option<Vec<u8>> {
    if header.len() >= 1 << 19 {
        return None;
    }
    let length = 10 + header.len() + coefficients.len();
    let padding = length % 2;
    let mut file = Vec::with_capacity(20 + length + padding);
    let size = |bytes: usize| (bytes as u32).to_le_bytes();
    file.extend(b"RIFF");
    file.extend(size(12 + length + padding));
    file.extend(b"WEBPVP8 ");
    file.extend(size(length + padding));
    // A key frame of version 0 that is shown.
    let tag = 1 << 4 | (header.len() as u32) << 5;
    file.extend(&tag.to_le_bytes()[..3]);
    file.extend([0x9d, 0x01, 0x2a]);
    file.extend((width as u16).to_le_bytes());
    file.extend((height as u16).to_le_bytes());
    file.extend(header);
    file.extend(coefficients);
    file.extend(std::iter::repeat_n(0, padding));
    Some(file)
}
