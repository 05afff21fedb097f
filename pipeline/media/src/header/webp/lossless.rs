//! What the codes of a lossless WebP take in memory.
//!
//! A picture is read with up to 65,536 groups of five codes, and a decoder makes tables of all of them before the first pixel,
//! however small the picture is: 4 MB of file with 4 x 4 pixels made one of 1.3 GB. How many there are stands behind the
//! transforms and in a small picture of its own, so both are read here, as far as needed and without keeping a pixel.

/// For pixels that stand for themselves: green, which is also lengths and remembered colours, red, blue, alpha, distances.
const ALPHABETS: [usize; 5] = [256 + LENGTHS, 256, 256, 256, 40];
const LITERALS: usize = 256;
const LENGTHS: usize = 24;
const GREEN: usize = 0;
const RED: usize = 1;
const DISTANCE: usize = 4;

/// Of a stream behind its signature and size. What cannot be read has been counted up to there; the decoder says why.
pub(super) fn memory_of_codes(stream: &[u8], width: u32, height: u32) -> u64 {
    let mut memory = 0;
    let _ = count(&mut Bits { bytes: stream, at: 0 }, width, height, &mut memory);
    memory
}

fn count(bits: &mut Bits<'_>, mut width: u32, height: u32, memory: &mut u64) -> Option<()> {
    let blocks = |width: u32, bits: u32| u64::from(width.div_ceil(1 << bits)) * u64::from(height.div_ceil(1 << bits));
    // Each of the four may be there once; a decoder does not go on behind a second one.
    let mut met = [false; 4];
    while bits.read(1)? == 1 {
        let kind = bits.read(2)?;
        if std::mem::replace(&mut met[kind as usize], true) {
            return None;
        }
        match kind {
            0 | 1 => {
                let side = bits.read(3)? + 2;
                largest_pixel(bits, blocks(width, side))?;
            }
            2 => {}
            _ => {
                let colours = bits.read(8)? + 1;
                largest_pixel(bits, colours.into())?;
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
    let remembered = remembered_colours(bits)?;
    let mut groups = 1;
    if bits.read(1)? == 1 {
        let side = bits.read(3)? + 2;
        groups = largest_pixel(bits, blocks(width, side))? + 1;
    }
    for _ in 0..groups {
        for alphabet in alphabets(remembered) {
            *memory += Code::read(bits, alphabet)?.memory();
        }
    }
    Some(())
}

/// Reads a picture of its own. Red and green of its pixels are a number; the largest, as a copied pixel is never new.
fn largest_pixel(bits: &mut Bits<'_>, pixels: u64) -> Option<u32> {
    let remembered = remembered_colours(bits)?;
    let mut codes = Vec::with_capacity(ALPHABETS.len());
    for alphabet in alphabets(remembered) {
        codes.push(Code::read(bits, alphabet)?);
    }
    // Of one colour, and said without a bit.
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
            done += u64::from(bits.distance(green - LITERALS)?);
            let distance = codes[DISTANCE].next(bits)?;
            bits.distance(distance)?;
        } else {
            done += 1;
        }
    }
    Some(largest)
}

fn remembered_colours(bits: &mut Bits<'_>) -> Option<usize> {
    if bits.read(1)? == 0 {
        return Some(0);
    }
    let size = bits.read(4)?;
    (1..=11).contains(&size).then_some(1 << size)
}

fn alphabets(remembered: usize) -> [usize; 5] {
    let mut alphabets = ALPHABETS;
    alphabets[GREEN] += remembered;
    alphabets
}

/// Bits of each byte from the lowest.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn read(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value, place| Some(value | self.bit()? << place))
    }

    fn bit(&mut self) -> Option<u32> {
        let bit = self.bytes.get(self.at / 8)? >> (self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    /// Of a length or a distance: the first four are themselves, the others have bits of their own.
    fn distance(&mut self, symbol: usize) -> Option<u32> {
        if symbol < 4 {
            return Some(symbol as u32 + 1);
        }
        let extra = (symbol as u32 - 2) / 2;
        let from = (2 + (symbol as u32 & 1)) << extra;
        Some(from + self.read(extra)? + 1)
    }
}

/// A prefix code: how many symbols have each length, and the symbols in that order.
struct Code {
    counts: [u16; Code::LONGEST + 1],
    symbols: Vec<u16>,
}

impl Code {
    const LONGEST: usize = 15;
    /// In which order the lengths of the code for lengths are stored.
    const ORDER: [usize; 19] = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    fn read(bits: &mut Bits<'_>, alphabet: usize) -> Option<Self> {
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

    /// One symbol that takes no bits, or two of one bit.
    fn read_simple(bits: &mut Bits<'_>, alphabet: usize) -> Option<Self> {
        let two = bits.read(1)? == 1;
        let size = if bits.read(1)? == 1 { 8 } else { 1 };
        let mut symbols = vec![bits.read(size)? as u16];
        if two {
            symbols.push(bits.read(8)? as u16);
        }
        let mut counts = [0; Self::LONGEST + 1];
        counts[usize::from(two)] = symbols.len() as u16;
        symbols.iter().all(|symbol| usize::from(*symbol) < alphabet).then_some(Self { counts, symbols })
    }

    fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; Self::LONGEST + 1];
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

    fn next(&self, bits: &mut Bits<'_>) -> Option<usize> {
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

    /// A table of up to ten bits, and a tree for what is longer.
    fn memory(&self) -> u64 {
        const TABLE_BITS: usize = 10;
        const ENTRY: u64 = 4;
        const NODES: u64 = 3 * 16;
        const ITSELF: u64 = 64;
        let longest = self.counts.iter().rposition(|count| *count > 0).unwrap_or_default();
        let in_tree: u64 = self.counts.iter().skip(TABLE_BITS + 1).map(|count| u64::from(*count)).sum();
        let table = if longest > 1 { ENTRY << longest.min(TABLE_BITS) } else { 0 };
        ITSELF + table + in_tree * NODES
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

        fn single(&mut self, symbol: u32) {
            self.write(0b101, 3).write(symbol, 8);
        }

        /// All 256 symbols in eight bits each, said in few.
        fn full(&mut self) {
            self.write(0, 1).write(8, 4);
            for place in 0..12 {
                self.write(u32::from(place == 11), 3);
            }
            self.write(1, 1).write(3, 3).write(254, 8);
        }
    }

    /// These transforms, each of one colour; no remembered colours, blocks of four, and as many groups of full codes as
    /// `largest` says.
    fn bomb_behind(transforms: &[u32], largest: [u32; 2], groups: u32) -> Vec<u8> {
        let mut writer = Writer::default();
        for kind in transforms {
            writer.write(1, 1).write(*kind, 2);
            match kind {
                0 | 1 => writer.write(0, 3),
                2 => continue,
                _ => writer.write(255, 8),
            };
            writer.write(0, 1);
            (0..5).for_each(|_| writer.single(0));
        }
        writer.write(0, 2).write(1, 1).write(0, 3).write(0, 1);
        [largest[1], largest[0], 0, 0, 0].iter().for_each(|symbol| writer.single(*symbol));
        for _ in 0..groups {
            (0..4).for_each(|_| writer.full());
            writer.single(0);
        }
        writer.bytes
    }

    fn bomb(largest: [u32; 2], groups: u32) -> Vec<u8> {
        bomb_behind(&[], largest, groups)
    }

    #[test]
    fn every_group_is_counted() {
        let a_group = 4 * (64 + 256 * 4) + 64;
        assert_eq!(memory_of_codes(&bomb([0, 0], 1), 4, 4), a_group);
        assert_eq!(memory_of_codes(&bomb([1, 2], 259), 4, 4), 259 * a_group);
        // Announced, but not there.
        assert_eq!(memory_of_codes(&bomb([0xff, 0xff], 3), 4, 4) / a_group, 3);
        assert_eq!(memory_of_codes(b"", 4, 4), 0);
    }

    #[test]
    fn groups_are_counted_behind_any_number_of_transforms() {
        let plain = memory_of_codes(&bomb([1, 2], 259), 4, 4);
        for transforms in [&[2][..], &[0, 1], &[3, 2, 0], &[0, 1, 2, 3], &[3, 2, 1, 0]] {
            assert_eq!(memory_of_codes(&bomb_behind(transforms, [1, 2], 259), 4, 4), plain, "{transforms:?}");
        }
        // A decoder goes no further than the second of a kind.
        for transforms in [&[2, 2][..], &[0, 1, 2, 3, 0]] {
            assert_eq!(memory_of_codes(&bomb_behind(transforms, [1, 2], 259), 4, 4), 0, "{transforms:?}");
        }
    }

    #[test]
    fn real_files_take_little() {
        for side in [1, 16, 300] {
            let file = crate::samples::file(&crate::samples::quarters(side, side), image::ImageFormat::WebP);
            let memory = memory_of_codes(&file[25..], side, side);
            assert!((1..100_000).contains(&memory), "{memory}");
        }
    }
}
