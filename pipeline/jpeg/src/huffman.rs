//! Huffman tables of a JPEG (T.81 annex C) and the bit reader for entropy-coded data.

use memchr::memchr;

/// A Huffman table for decoding.
#[derive(Clone)]
pub(crate) struct HuffmanTable {
    /// One entry for each value of the next `LOOKUP_BITS` bits.
    lookup: Box<[LookupEntry; 1 << HuffmanTable::LOOKUP_BITS]>,
    /// For each code length, the first code that is longer, left-aligned to 16 bits.
    ends: [u32; 17],
    /// For each code length, the offset from a code to the index of its symbol.
    offsets: [i32; 17],
    symbols: Box<[u8; 256]>,
}

/// The result of looking up a few bits.
#[derive(Clone, Copy, Default)]
struct LookupEntry {
    /// Length of the code; 0 if it is longer than the lookup.
    code_bits: u8,
    symbol: u8,
    /// The coefficient that follows, if the symbol is one of an AC table.
    value: i8,
    /// Length of code and coefficient together; 0 if they are longer than the lookup, or there is no coefficient.
    total_bits: u8,
}

/// A symbol of an AC table with its coefficient (T.81 F.1.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcToken {
    /// A run of zeros, then a coefficient.
    Coefficient { run: u8, value: i16 },
    /// No coefficient: sixteen zeros (ZRL) if the number is 15, otherwise an end of block (EOB, or EOBn in progressive scans).
    Run(u8),
}

impl HuffmanTable {
    const LOOKUP_BITS: u32 = 10;
    const MAX_CODE_BITS: usize = 16;

    /// Builds a table from the number of codes per length and their symbols in order. Returns `None` if these are invalid.
    pub(crate) fn new(counts: &[u8; Self::MAX_CODE_BITS], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            lookup: Box::new([LookupEntry::default(); 1 << Self::LOOKUP_BITS]),
            ends: [0; 17],
            offsets: [0; 17],
            symbols: Box::new([0; 256]),
        };
        table.symbols.get_mut(..symbols.len())?.copy_from_slice(symbols);
        let (mut code, mut position) = (0_u32, 0_usize);
        for length in 1..=Self::MAX_CODE_BITS {
            table.offsets[length] = position as i32 - code as i32;
            for _ in 0..counts[length - 1] {
                if code >= 1 << length {
                    return None;
                }
                let symbol = *symbols.get(position)?;
                table.fill_lookup(code, length as u32, symbol);
                code += 1;
                position += 1;
            }
            table.ends[length] = code << (Self::MAX_CODE_BITS - length);
            code <<= 1;
        }
        Some(table)
    }

    fn fill_lookup(&mut self, code: u32, length: u32, symbol: u8) {
        let Some(free) = Self::LOOKUP_BITS.checked_sub(length) else { return };
        let size = u32::from(symbol & 15);
        for after in 0..1 << free {
            let mut lookup = LookupEntry { code_bits: length as u8, symbol, value: 0, total_bits: 0 };
            // Coefficients of up to seven bits fit into an `i8`.
            if size > 0 && size <= free.min(7) {
                lookup.value = extend(after >> (free - size), size) as i8;
                lookup.total_bits = (length + size) as u8;
            }
            self.lookup[((code << free) + after) as usize] = lookup;
        }
    }

    /// Reads the next symbol, or returns `None` if no code matches.
    #[inline]
    pub(crate) fn read_symbol(&self, bits: &mut BitReader<'_>) -> Option<u8> {
        bits.refill();
        let lookup = self.lookup[bits.peek(Self::LOOKUP_BITS) as usize];
        self.finish(bits, lookup)
    }

    #[inline(always)]
    fn finish(&self, bits: &mut BitReader<'_>, lookup: LookupEntry) -> Option<u8> {
        if lookup.code_bits > 0 {
            bits.consume(lookup.code_bits.into());
            return Some(lookup.symbol);
        }
        self.read_long_code(bits)
    }

    #[cold]
    fn read_long_code(&self, bits: &mut BitReader<'_>) -> Option<u8> {
        let code = bits.peek(Self::MAX_CODE_BITS as u32);
        let length = (Self::LOOKUP_BITS as usize + 1..=Self::MAX_CODE_BITS).find(|length| code < self.ends[*length])?;
        bits.consume(length as u32);
        let position = (code >> (Self::MAX_CODE_BITS - length)) as i32 + self.offsets[length];
        self.symbols.get(usize::try_from(position).ok()?).copied()
    }

    /// Reads the next symbol of a block with its coefficient, or returns `None` if no code matches.
    #[inline(always)]
    pub(crate) fn read_ac(&self, bits: &mut BitReader<'_>) -> Option<AcToken> {
        bits.refill();
        let lookup = self.lookup[bits.peek(Self::LOOKUP_BITS) as usize];
        if lookup.total_bits > 0 {
            bits.consume(lookup.total_bits.into());
            return Some(AcToken::Coefficient { run: lookup.symbol >> 4, value: lookup.value.into() });
        }
        let symbol = self.finish(bits, lookup)?;
        let (run, size) = (symbol >> 4, u32::from(symbol & 15));
        if size == 0 {
            return Some(AcToken::Run(run));
        }
        // `refill` provides enough bits for a code and its coefficient.
        let value = extend(bits.peek(size), size) as i16;
        bits.consume(size);
        Some(AcToken::Coefficient { run, value })
    }

    /// Reads the difference between the DC coefficients of a block and the previous one.
    #[inline]
    pub(crate) fn read_dc_difference(&self, bits: &mut BitReader<'_>) -> Option<i32> {
        let size = u32::from(self.read_symbol(bits)?);
        if size > 16 {
            return None;
        }
        bits.refill();
        let value = bits.peek(size);
        bits.consume(size);
        Some(extend(value, size))
    }
}

/// Sign-extends a value of this many bits (EXTEND, T.81 F.2.2.1): those that begin with a zero are negative.
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let is_negative = (bits >> size.saturating_sub(1)) ^ 1;
    bits as i32 - ((is_negative << size) as i32 - is_negative as i32)
}

/// Reads bits up to the next marker. Zeros follow the end, and [`BitReader::is_overdrawn`] becomes true when they are used.
pub(crate) struct BitReader<'a> {
    data: &'a [u8],
    at: usize,
    buffer: u64,
    filled: u32,
    /// Number of bits in `filled` that are padding after the end of the data.
    padding: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, buffer: 0, filled: 0, padding: 0 }
    }

    /// Ensures at least 32 bits: a code and its coefficient are never longer.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        if self.filled < 32 {
            self.fill();
        }
    }

    #[inline]
    fn fill(&mut self) {
        const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
        if let Some(next) = self.data.get(self.at..).and_then(<[u8]>::first_chunk) {
            let next = u64::from_be_bytes(*next);
            let has_ff = (!next).wrapping_sub(LOWEST) & next & (LOWEST << 7) != 0;
            if !has_ff {
                // As many whole bytes as fit; the rest of the eight is read again.
                let bytes = (64 - self.filled) / 8;
                self.buffer |= next >> (64 - bytes * 8) << (64 - bytes * 8) >> self.filled;
                self.filled += bytes * 8;
                self.at += bytes as usize;
                return;
            }
        }
        self.fill_bytewise();
    }

    #[cold]
    fn fill_bytewise(&mut self) {
        while self.filled <= 56 {
            let byte = match self.data.get(self.at..) {
                Some([0xff, 0, ..]) => {
                    self.at += 2;
                    0xff
                }
                None | Some([] | [0xff, ..]) => {
                    self.padding = self.padding.saturating_add(8);
                    0
                }
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.buffer |= u64::from(byte) << (56 - self.filled);
            self.filled += 8;
        }
    }

    /// Returns the next bits without consuming them, at most 32 after [`BitReader::refill`].
    #[inline(always)]
    fn peek(&self, count: u32) -> u32 {
        (self.buffer >> 32 << count >> 32) as u32
    }

    /// Consumes at most as many bits as [`BitReader::refill`] provided.
    #[inline(always)]
    fn consume(&mut self, count: u32) {
        self.buffer <<= count;
        self.filled -= count;
    }

    /// Reads at most 16 bits.
    #[inline]
    pub(crate) fn read(&mut self, count: u32) -> u32 {
        self.refill();
        let bits = self.peek(count);
        self.consume(count);
        bits
    }

    /// Returns whether more bits were read than the data has.
    #[inline]
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.padding > self.filled
    }

    /// Returns the number of unread bytes before the next marker, and the data from that marker on.
    pub(crate) fn finish(self) -> (usize, &'a [u8]) {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let to_marker = find_marker(rest).unwrap_or(rest.len());
        let unread = self.filled.saturating_sub(self.padding) / 8;
        (to_marker + unread as usize, &rest[to_marker..])
    }
}

/// Returns the offset of the next marker.
fn find_marker(data: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr(0xff, data.get(from..)?)?;
        match data.get(at + 1)? {
            0 => from = at + 2,
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_codes_are_read() {
        // One code each of 1, 2, ... 12 bits: 0, 10, 110, ...
        let mut counts = [0; 16];
        counts[..12].fill(1);
        let symbols: Vec<u8> = (1..=12).collect();
        let huffman = HuffmanTable::new(&counts, &symbols).expect("a table");
        let text: String = (1..=12).map(|length| "1".repeat(length - 1) + "0").collect::<String>() + "11";
        let bytes: Vec<u8> = text
            .as_bytes()
            .chunks(8)
            .flat_map(|bits| {
                let byte = bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
                if byte == 0xff { vec![0xff, 0] } else { vec![byte] }
            })
            .collect();
        let mut bits = BitReader::new(&bytes);
        for symbol in &symbols {
            assert_eq!(huffman.read_symbol(&mut bits), Some(*symbol));
            assert!(!bits.is_overdrawn());
        }
        assert_eq!(bits.read(2), 3);
        assert!(!bits.is_overdrawn());
        bits.read(1);
        assert!(bits.is_overdrawn());
    }

    #[test]
    fn coefficients_are_read_with_their_codes() {
        // 0: two zeros and two bits; 10: five bits; 110: twelve bits, too long for the lookup; 1110: sixteen zeros.
        let mut counts = [0; 16];
        counts[..4].fill(1);
        let huffman = HuffmanTable::new(&counts, &[0x22, 0x05, 0x1c, 0xf0]).expect("a table");
        // 0 11, 0 01, 10 01111, 110 1000 0000 0001, 1110.
        let mut bits = BitReader::new(&[0b0110_0110, 0b0111_1110, 0b1000_0000, 0b0001_1110]);
        let mut value = |run, value| assert_eq!(huffman.read_ac(&mut bits), Some(AcToken::Coefficient { run, value }));
        value(2, 3);
        value(2, -2);
        value(0, -16);
        value(1, 0x801);
        assert_eq!(huffman.read_ac(&mut bits), Some(AcToken::Run(15)));
    }

    #[test]
    fn dc_differences_are_signed() {
        let mut counts = [0; 16];
        counts[..2].fill(1);
        let huffman = HuffmanTable::new(&counts, &[0, 3]).expect("a table");
        // 0, 10 111, 10 000, 10 011.
        let mut bits = BitReader::new(&[0b0101_1110, 0b0001_0011]);
        let differences: Vec<_> = (0..4).map(|_| huffman.read_dc_difference(&mut bits)).collect();
        assert_eq!(differences, [Some(0), Some(7), Some(-7), Some(-4)]);
    }

    #[test]
    fn bits_without_a_code_are_rejected() {
        let mut counts = [0; 16];
        counts[1] = 1;
        let huffman = HuffmanTable::new(&counts, &[7]).expect("a table");
        assert_eq!(huffman.read_symbol(&mut BitReader::new(&[0x20])), Some(7));
        assert_eq!(huffman.read_symbol(&mut BitReader::new(&[0x40])), None);
        counts[0] = 3;
        assert!(HuffmanTable::new(&counts, &[1, 2, 3, 4]).is_none(), "three codes of one bit");
    }

    #[test]
    fn unread_bytes_are_counted() {
        let data = b"abcdefghijklmnopq\xff\0\xff\xd9rest";
        let mut bits = BitReader::new(data);
        assert_eq!(bits.read(16), 0x6162);
        assert_eq!(bits.finish(), (17, &b"\xff\xd9rest"[..]));
        assert_eq!(BitReader::new(b"no marker").finish(), (9, &b""[..]));
    }
}
