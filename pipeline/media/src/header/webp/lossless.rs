//! Memory of the prefix code tables of a lossless WebP (RFC 9649, section 3).
//!
//! An image uses up to 65,536 prefix code groups of five codes, and a decoder builds the tables of all of them before the first
//! pixel, however small the image is: a file of 4 MB with 4 x 4 pixels took 1.3 GB. The number of groups follows the transforms
//! and is stored in the entropy image, so both are parsed here, as far as needed and without keeping a pixel.

/// Alphabet sizes of a group (RFC 9649, section 3.7): green with lengths and colour cache, red, blue, alpha, distance.
const ALPHABET_SIZES: [usize; 5] = [256 + LENGTHS, 256, 256, 256, 40];
const LITERALS: usize = 256;
const LENGTHS: usize = 24;
const GREEN: usize = 0;
const RED: usize = 1;
const DISTANCE: usize = 4;

/// Returns the memory for a stream after its signature and size. What cannot be parsed is counted up to there; the decoder
/// reports the error.
pub(super) fn prefix_code_memory(stream: &[u8], width: u32, height: u32) -> u64 {
    let mut memory = 0;
    let _ = count_codes(&mut BitReader { bytes: stream, at: 0 }, width, height, &mut memory);
    memory
}

fn count_codes(bits: &mut BitReader<'_>, mut width: u32, height: u32, memory: &mut u64) -> Option<()> {
    let blocks = |width: u32, bits: u32| u64::from(width.div_ceil(1 << bits)) * u64::from(height.div_ceil(1 << bits));
    // Each of the four transforms may occur once; the decoder stops at a repetition.
    let mut seen_transforms = [false; 4];
    while bits.read(1)? == 1 {
        let kind = bits.read(2)?;
        if std::mem::replace(&mut seen_transforms[kind as usize], true) {
            return None;
        }
        // 0 is predictor, 1 colour, 2 subtract green, 3 colour indexing.
        match kind {
            0 | 1 => {
                let side = bits.read(3)? + 2;
                read_entropy_image(bits, blocks(width, side))?;
            }
            2 => {}
            _ => {
                let colours = bits.read(8)? + 1;
                read_entropy_image(bits, colours.into())?;
                width = width.div_ceil(if colours <= 2 {
                    8
                } else if colours <= 4 {
                    4
                } else if colours <= 16 {
                    2
                } else {
                    1
                });
            }
        }
    }
    let colour_cache_size = read_colour_cache_size(bits)?;
    let mut groups = 1;
    if bits.read(1)? == 1 {
        let side = bits.read(3)? + 2;
        groups = read_entropy_image(bits, blocks(width, side))? + 1;
    }
    for _ in 0..groups {
        for alphabet in alphabet_sizes(colour_cache_size) {
            *memory += PrefixCode::read(bits, alphabet)?.memory();
        }
    }
    Some(())
}

/// Parses an entropy-coded subimage. Returns the largest meta prefix code, stored in red and green of its pixels; copies
/// (back references, colour cache) never add a new value.
fn read_entropy_image(bits: &mut BitReader<'_>, pixels: u64) -> Option<u32> {
    let colour_cache_size = read_colour_cache_size(bits)?;
    let mut codes = Vec::with_capacity(ALPHABET_SIZES.len());
    for alphabet in alphabet_sizes(colour_cache_size) {
        codes.push(PrefixCode::read(bits, alphabet)?);
    }
    // A single colour takes no bits.
    if let [Some(green), Some(red), Some(_), Some(_)] = [0, 1, 2, 3].map(|colour| codes[colour].only_symbol())
        && green < LITERALS
    {
        return Some((red << 8 | green) as u32);
    }
    let (mut done, mut largest) = (0, 0);
    while done < pixels {
        let green = codes[GREEN].next(bits)?;
        if green < LITERALS {
            let red = codes[RED].next(bits)?;
            codes[RED + 1].next(bits)?;
            codes[RED + 2].next(bits)?;
            largest = largest.max((red << 8 | green) as u32);
            done += 1;
        } else if green < LITERALS + LENGTHS {
            done += u64::from(bits.read_lz77_value(green - LITERALS)?);
            let distance = codes[DISTANCE].next(bits)?;
            bits.read_lz77_value(distance)?;
        } else {
            done += 1;
        }
    }
    Some(largest)
}

fn read_colour_cache_size(bits: &mut BitReader<'_>) -> Option<usize> {
    if bits.read(1)? == 0 {
        return Some(0);
    }
    let size = bits.read(4)?;
    (1..=11).contains(&size).then_some(1 << size)
}

fn alphabet_sizes(colour_cache_size: usize) -> [usize; 5] {
    let mut alphabet_sizes = ALPHABET_SIZES;
    alphabet_sizes[GREEN] += colour_cache_size;
    alphabet_sizes
}

/// Reads bits, least significant first.
struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn read(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value, bit| Some(value | self.bit()? << bit))
    }

    fn bit(&mut self) -> Option<u32> {
        let bit = self.bytes.get(self.at / 8)? >> (self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    /// Reads a length or a distance from its prefix symbol: the first four are literal, the others have extra bits.
    fn read_lz77_value(&mut self, symbol: usize) -> Option<u32> {
        if symbol < 4 {
            return Some(symbol as u32 + 1);
        }
        let extra = (symbol as u32 - 2) / 2;
        let from = (2 + (symbol as u32 & 1)) << extra;
        Some(from + self.read(extra)? + 1)
    }
}

/// A canonical prefix code: the number of symbols per code length, and the symbols in that order.
struct PrefixCode {
    counts: [u16; PrefixCode::MAX_LENGTH + 1],
    symbols: Vec<u16>,
}

impl PrefixCode {
    const MAX_LENGTH: usize = 15;
    /// The storage order of the lengths of the code length code.
    const ORDER: [usize; 19] = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    fn read(bits: &mut BitReader<'_>, alphabet: usize) -> Option<Self> {
        if bits.read(1)? == 1 {
            return Self::read_simple(bits, alphabet);
        }
        let mut lengths = [0; Self::ORDER.len()];
        for at in &Self::ORDER[..bits.read(4)? as usize + 4] {
            lengths[*at] = bits.read(3)? as u8;
        }
        let code = Self::new(&lengths)?;
        let mut left = alphabet;
        if bits.read(1)? == 1 {
            let size = bits.read(3)? * 2 + 2;
            left = bits.read(size)? as usize + 2;
        }
        let (mut lengths, mut last) = (Vec::with_capacity(alphabet), 8);
        while lengths.len() < alphabet && left > 0 {
            left -= 1;
            let (length, times) = match code.next(bits)? {
                16 => (last, bits.read(2)? + 3),
                17 => (0, bits.read(3)? + 3),
                18 => (0, bits.read(7)? + 11),
                length => (length as u8, 1),
            };
            if length > 0 {
                last = length;
            }
            lengths.extend(std::iter::repeat_n(length, times as usize));
        }
        (lengths.len() <= alphabet).then(|| Self::new(&lengths))?
    }

    /// Reads a simple code: one symbol of no bits, or two of one bit.
    fn read_simple(bits: &mut BitReader<'_>, alphabet: usize) -> Option<Self> {
        let two = bits.read(1)? == 1;
        let size = if bits.read(1)? == 1 { 8 } else { 1 };
        let mut symbols = vec![bits.read(size)? as u16];
        if two {
            symbols.push(bits.read(8)? as u16);
        }
        let mut counts = [0; Self::MAX_LENGTH + 1];
        counts[usize::from(two)] = symbols.len() as u16;
        symbols.iter().all(|symbol| usize::from(*symbol) < alphabet).then_some(Self { counts, symbols })
    }

    fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; Self::MAX_LENGTH + 1];
        let mut symbols: Vec<u16> =
            (0..lengths.len() as u16).filter(|symbol| lengths[usize::from(*symbol)] > 0).collect();
        symbols.sort_by_key(|symbol| lengths[usize::from(*symbol)]);
        match symbols.as_slice() {
            [] => return None,
            [_] => counts[0] = 1,
            [..] => symbols.iter().for_each(|symbol| counts[usize::from(lengths[usize::from(*symbol)])] += 1),
        }
        Some(Self { counts, symbols })
    }

    fn only_symbol(&self) -> Option<usize> {
        self.symbols.first().copied().map(usize::from).filter(|_| self.counts[0] == 1)
    }

    fn next(&self, bits: &mut BitReader<'_>) -> Option<usize> {
        if let Some(symbol) = self.only_symbol() {
            return Some(symbol);
        }
        let (mut code, mut first, mut place) = (0_i32, 0_i32, 0_i32);
        for count in &self.counts[1..] {
            code |= bits.bit()? as i32;
            let count = i32::from(*count);
            if code - first < count {
                return self.symbols.get(usize::try_from(place + code - first).ok()?).copied().map(usize::from);
            }
            place += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }

    /// Returns the decoder's memory: a lookup table of up to ten bits, and a tree for longer codes.
    fn memory(&self) -> u64 {
        const TABLE_BITS: usize = 10;
        const ENTRY: u64 = 4;
        const NODES: u64 = 3 * 16;
        const ITSELF: u64 = 64;
        let longest = self.counts.iter().rposition(|count| *count > 0).unwrap_or_default();
        let tree_symbols: u64 = self.counts.iter().skip(TABLE_BITS + 1).map(|count| u64::from(*count)).sum();
        let table = if longest > 1 { ENTRY << longest.min(TABLE_BITS) } else { 0 };
        ITSELF + table + tree_symbols * NODES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Writer {
        bytes: Vec<u8>,
        at: usize,
    }

    impl Writer {
        fn write(&mut self, value: u32, count: u32) -> &mut Self {
            for place in 0..count {
                if self.at.is_multiple_of(8) {
                    self.bytes.push(0);
                }
                let last = self.bytes.len() - 1;
                self.bytes[last] |= ((value >> place & 1) as u8) << (self.at % 8);
                self.at += 1;
            }
            self
        }

        fn write_single_symbol_code(&mut self, symbol: u32) {
            self.write(0b101, 3).write(symbol, 8);
        }

        /// Writes a code of 256 symbols of eight bits each, compactly.
        fn write_full_code(&mut self) {
            self.write(0, 1).write(8, 4);
            for place in 0..12 {
                self.write(u32::from(place == 11), 3);
            }
            self.write(1, 1).write(3, 3).write(254, 8);
        }
    }

    /// Returns these transforms, each of one colour; no colour cache, blocks of four, and as many groups of full codes as
    /// `largest` says.
    fn bomb_after(transforms: &[u32], largest: [u32; 2], groups: u32) -> Vec<u8> {
        let mut writer = Writer::default();
        for kind in transforms {
            writer.write(1, 1).write(*kind, 2);
            match kind {
                0 | 1 => writer.write(0, 3),
                2 => continue,
                _ => writer.write(255, 8),
            };
            writer.write(0, 1);
            (0..5).for_each(|_| writer.write_single_symbol_code(0));
        }
        writer.write(0, 2).write(1, 1).write(0, 3).write(0, 1);
        [largest[1], largest[0], 0, 0, 0].iter().for_each(|symbol| writer.write_single_symbol_code(*symbol));
        for _ in 0..groups {
            (0..4).for_each(|_| writer.write_full_code());
            writer.write_single_symbol_code(0);
        }
        writer.bytes
    }

    fn bomb(largest: [u32; 2], groups: u32) -> Vec<u8> {
        bomb_after(&[], largest, groups)
    }

    #[test]
    fn every_group_is_counted() {
        let a_group = 4 * (64 + 256 * 4) + 64;
        assert_eq!(prefix_code_memory(&bomb([0, 0], 1), 4, 4), a_group);
        assert_eq!(prefix_code_memory(&bomb([1, 2], 259), 4, 4), 259 * a_group);
        // More groups declared than present.
        assert_eq!(prefix_code_memory(&bomb([0xff, 0xff], 3), 4, 4) / a_group, 3);
        assert_eq!(prefix_code_memory(b"", 4, 4), 0);
    }

    #[test]
    fn groups_are_counted_after_any_number_of_transforms() {
        let plain = prefix_code_memory(&bomb([1, 2], 259), 4, 4);
        for transforms in [&[2][..], &[0, 1], &[3, 2, 0], &[0, 1, 2, 3], &[3, 2, 1, 0]] {
            assert_eq!(prefix_code_memory(&bomb_after(transforms, [1, 2], 259), 4, 4), plain, "{transforms:?}");
        }
        // The decoder stops at a repeated transform.
        for transforms in [&[2, 2][..], &[0, 1, 2, 3, 0]] {
            assert_eq!(prefix_code_memory(&bomb_after(transforms, [1, 2], 259), 4, 4), 0, "{transforms:?}");
        }
    }

    #[test]
    fn real_files_need_little_memory() {
        for side in [1, 16, 300] {
            let file = crate::samples::encode(&crate::samples::quadrants(side, side), image::ImageFormat::WebP);
            let memory = prefix_code_memory(&file[25..], side, side);
            assert!((1..100_000).contains(&memory), "{memory}");
        }
    }
}
