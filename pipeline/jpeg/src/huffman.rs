//! Huffman codes of a JPEG, and the bits they are read from.

use memchr::memchr;

/// Symbols by their codes.
#[derive(Clone)]
pub(crate) struct Huffman {
    /// For every beginning of this many bits.
    short: Box<[Short; 1 << Huffman::SHORT]>,
    /// For each length, the first code that is longer, filled up with ones to 16 bits.
    ends: [u32; 17],
    /// For each length, what is added to a code to get the place of its symbol.
    offsets: [i32; 17],
    symbols: Box<[u8; 256]>,
}

/// What so few bits say already.
#[derive(Clone, Copy, Default)]
struct Short {
    /// How many bits the code has; 0 where it has more than these.
    code: u8,
    symbol: u8,
    /// What the symbol announces, taking it for that of a frequency.
    value: i8,
    /// How many bits code and value have; 0 where they have more than these, or there is no value.
    both: u8,
}

/// What is said about the next frequencies of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// So many zeros and then this.
    Value { zeros: u8, value: i16 },
    /// No value: sixteen zeros where the number is 15, otherwise the end of the block.
    Zeros(u8),
}

impl Huffman {
    const SHORT: u32 = 10;
    const LONGEST: usize = 16;

    /// Of how many codes each length has, and their symbols in order. `None` where that cannot be.
    pub(crate) fn new(counts: &[u8; Self::LONGEST], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            short: Box::new([Short::default(); 1 << Self::SHORT]),
            ends: [0; 17],
            offsets: [0; 17],
            symbols: Box::new([0; 256]),
        };
        table.symbols.get_mut(..symbols.len())?.copy_from_slice(symbols);
        let (mut code, mut place) = (0_u32, 0_usize);
        for length in 1..=Self::LONGEST {
            table.offsets[length] = place as i32 - code as i32;
            for _ in 0..counts[length - 1] {
                if code >= 1 << length {
                    return None;
                }
                let symbol = *symbols.get(place)?;
                table.remember(code, length as u32, symbol);
                code += 1;
                place += 1;
            }
            table.ends[length] = code << (Self::LONGEST - length);
            code <<= 1;
        }
        Some(table)
    }

    fn remember(&mut self, code: u32, length: u32, symbol: u8) {
        let Some(free) = Self::SHORT.checked_sub(length) else { return };
        let size = u32::from(symbol & 15);
        for after in 0..1 << free {
            let mut short = Short { code: length as u8, symbol, value: 0, both: 0 };
            // Values of up to seven bits have room in a byte.
            if size > 0 && size <= free.min(7) {
                short.value = extend(after >> (free - size), size) as i8;
                short.both = (length + size) as u8;
            }
            self.short[((code << free) + after) as usize] = short;
        }
    }

    /// The next symbol; `None` where no code is like these bits.
    #[inline]
    pub(crate) fn symbol(&self, bits: &mut Bits<'_>) -> Option<u8> {
        bits.refill();
        let short = self.short[bits.top(Self::SHORT) as usize];
        self.finish(bits, short)
    }

    #[inline(always)]
    fn finish(&self, bits: &mut Bits<'_>, short: Short) -> Option<u8> {
        if short.code > 0 {
            bits.take(short.code.into());
            return Some(short.symbol);
        }
        self.long(bits)
    }

    #[cold]
    fn long(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let code = bits.top(Self::LONGEST as u32);
        let length = (Self::SHORT as usize + 1..=Self::LONGEST).find(|length| code < self.ends[*length])?;
        bits.take(length as u32);
        let place = (code >> (Self::LONGEST - length)) as i32 + self.offsets[length];
        self.symbols.get(usize::try_from(place).ok()?).copied()
    }

    /// What comes next in a block; `None` where no code is like these bits.
    #[inline(always)]
    pub(crate) fn next(&self, bits: &mut Bits<'_>) -> Option<Next> {
        bits.refill();
        let short = self.short[bits.top(Self::SHORT) as usize];
        if short.both > 0 {
            bits.take(short.both.into());
            return Some(Next::Value { zeros: short.symbol >> 4, value: short.value.into() });
        }
        let symbol = self.finish(bits, short)?;
        let (zeros, size) = (symbol >> 4, u32::from(symbol & 15));
        if size == 0 {
            return Some(Next::Zeros(zeros));
        }
        // A code and its value are never more than `refill` got.
        let value = extend(bits.top(size), size) as i16;
        bits.take(size);
        Some(Next::Value { zeros, value })
    }

    /// How much the mean of a block differs from that of the one before.
    #[inline]
    pub(crate) fn difference(&self, bits: &mut Bits<'_>) -> Option<i32> {
        let size = u32::from(self.symbol(bits)?);
        if size > 16 {
            return None;
        }
        bits.refill();
        let bits_of_it = bits.top(size);
        bits.take(size);
        Some(extend(bits_of_it, size))
    }
}

/// Of so many bits: those that begin with a zero are negative.
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let is_negative = (bits >> size.saturating_sub(1)) ^ 1;
    bits as i32 - ((is_negative << size) as i32 - is_negative as i32)
}

/// The bits up to the next marker. Beyond them come zeros, and [`Bits::overdrawn`] says so.
pub(crate) struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    buffer: u64,
    filled: u32,
    /// How many of `filled` are not in the data.
    borrowed: u32,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, buffer: 0, filled: 0, borrowed: 0 }
    }

    /// At least 32 bits: a code and the value that comes with it are never more.
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
                // All that fits in whole bytes; the rest of the eight is read again.
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
                    self.borrowed = self.borrowed.saturating_add(8);
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

    /// The next bits without taking them, at most 32 after [`Bits::refill`].
    #[inline(always)]
    fn top(&self, count: u32) -> u32 {
        (self.buffer >> 32 << count >> 32) as u32
    }

    /// As many as there are after [`Bits::refill`].
    #[inline(always)]
    fn take(&mut self, count: u32) {
        self.buffer <<= count;
        self.filled -= count;
    }

    /// At most 16.
    #[inline]
    pub(crate) fn read(&mut self, count: u32) -> u32 {
        self.refill();
        let bits = self.top(count);
        self.take(count);
        bits
    }

    /// Whether more was read than there is.
    #[inline]
    pub(crate) fn overdrawn(&self) -> bool {
        self.borrowed > self.filled
    }

    /// How many bytes follow unread before the next marker, and what follows from that marker on.
    pub(crate) fn finish(self) -> (usize, &'a [u8]) {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let to_marker = marker(rest).unwrap_or(rest.len());
        let unread = self.filled.saturating_sub(self.borrowed) / 8;
        (to_marker + unread as usize, &rest[to_marker..])
    }
}

/// Where the next marker is.
fn marker(data: &[u8]) -> Option<usize> {
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
    fn codes_short_and_long_are_read() {
        // One code each of 1, 2, ... 12 bits: 0, 10, 110, ...
        let mut counts = [0; 16];
        counts[..12].fill(1);
        let symbols: Vec<u8> = (1..=12).collect();
        let huffman = Huffman::new(&counts, &symbols).expect("a table");
        let text: String = (1..=12).map(|length| "1".repeat(length - 1) + "0").collect::<String>() + "11";
        let bytes: Vec<u8> = text
            .as_bytes()
            .chunks(8)
            .flat_map(|bits| {
                let byte = bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
                if byte == 0xff { vec![0xff, 0] } else { vec![byte] }
            })
            .collect();
        let mut bits = Bits::new(&bytes);
        for symbol in &symbols {
            assert_eq!(huffman.symbol(&mut bits), Some(*symbol));
            assert!(!bits.overdrawn());
        }
        assert_eq!(bits.read(2), 3);
        assert!(!bits.overdrawn());
        bits.read(1);
        assert!(bits.overdrawn());
    }

    #[test]
    fn values_come_with_their_codes() {
        // 0: two zeros and two bits; 10: five bits; 110: twelve bits, too many to be looked up; 1110: sixteen zeros.
        let mut counts = [0; 16];
        counts[..4].fill(1);
        let huffman = Huffman::new(&counts, &[0x22, 0x05, 0x1c, 0xf0]).expect("a table");
        // 0 11, 0 01, 10 01111, 110 1000 0000 0001, 1110.
        let mut bits = Bits::new(&[0b0110_0110, 0b0111_1110, 0b1000_0000, 0b0001_1110]);
        let mut value = |zeros, value| assert_eq!(huffman.next(&mut bits), Some(Next::Value { zeros, value }));
        value(2, 3);
        value(2, -2);
        value(0, -16);
        value(1, 0x801);
        assert_eq!(huffman.next(&mut bits), Some(Next::Zeros(15)));
    }

    #[test]
    fn differences_have_signs() {
        let mut counts = [0; 16];
        counts[..2].fill(1);
        let huffman = Huffman::new(&counts, &[0, 3]).expect("a table");
        // 0, 10 111, 10 000, 10 011.
        let mut bits = Bits::new(&[0b0101_1110, 0b0001_0011]);
        let differences: Vec<_> = (0..4).map(|_| huffman.difference(&mut bits)).collect();
        assert_eq!(differences, [Some(0), Some(7), Some(-7), Some(-4)]);
    }

    #[test]
    fn no_code_is_like_these_bits() {
        let mut counts = [0; 16];
        counts[1] = 1;
        let huffman = Huffman::new(&counts, &[7]).expect("a table");
        assert_eq!(huffman.symbol(&mut Bits::new(&[0x20])), Some(7));
        assert_eq!(huffman.symbol(&mut Bits::new(&[0x40])), None);
        counts[0] = 3;
        assert!(Huffman::new(&counts, &[1, 2, 3, 4]).is_none(), "three codes of one bit");
    }

    #[test]
    fn what_is_left_is_counted() {
        let data = b"abcdefghijklmnopq\xff\0\xff\xd9rest";
        let mut bits = Bits::new(data);
        assert_eq!(bits.read(16), 0x6162);
        assert_eq!(bits.finish(), (17, &b"\xff\xd9rest"[..]));
        assert_eq!(Bits::new(b"no marker").finish(), (9, &b""[..]));
    }
}
