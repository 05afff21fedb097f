//! Huffman codes of a JPEG, and the bits they are read from.

use memchr::memchr;

/// Symbols by their codes.
#[derive(Clone)]
pub(super) struct Huffman {
    /// Length and symbol for every beginning of this many bits; length 0 where the code is longer.
    short: Box<[(u8, u8); 1 << Huffman::SHORT]>,
    /// For each length, the first code that is longer, filled up with ones to 16 bits.
    ends: [u32; 17],
    /// For each length, what is added to a code to get the place of its symbol.
    offsets: [i32; 17],
    symbols: Box<[u8; 256]>,
}

impl Huffman {
    const SHORT: u32 = 9;
    const LONGEST: usize = 16;

    /// Of how many codes each length has, and their symbols in order. `None` where that cannot be.
    pub(super) fn new(counts: &[u8; Self::LONGEST], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            short: Box::new([(0, 0); 1 << Self::SHORT]),
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
        let first = (code << free) as usize;
        self.short[first..first + (1 << free)].fill((length as u8, symbol));
    }

    /// The next symbol; `None` where no code is like these bits.
    #[inline]
    pub(super) fn next(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let window = bits.peek();
        let (length, symbol) = self.short[(window >> (Bits::WINDOW - Self::SHORT)) as usize];
        if length > 0 {
            bits.skip(length.into());
            return Some(symbol);
        }
        let code = window >> (Bits::WINDOW - Self::LONGEST as u32);
        let length = (Self::SHORT as usize + 1..=Self::LONGEST).find(|length| code < self.ends[*length])?;
        bits.skip(length as u32);
        let place = (code >> (Self::LONGEST - length)) as i32 + self.offsets[length];
        self.symbols.get(usize::try_from(place).ok()?).copied()
    }
}

/// The bits up to the next marker. Beyond them come zeros, and [`Bits::overdrawn`] says so.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    buffer: u64,
    filled: u32,
    /// How many of `filled` are not in the data.
    borrowed: u32,
}

impl<'a> Bits<'a> {
    /// What `peek` shows: a code and the bits that come with it are never more.
    const WINDOW: u32 = 32;

    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, buffer: 0, filled: 0, borrowed: 0 }
    }

    #[inline]
    fn peek(&mut self) -> u32 {
        if self.filled < Self::WINDOW {
            self.fill();
        }
        (self.buffer >> 32) as u32
    }

    fn fill(&mut self) {
        const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
        if let Some(next) = self.data.get(self.at..).and_then(<[u8]>::first_chunk) {
            let next = u64::from_be_bytes(*next);
            let has_ff = (!next).wrapping_sub(LOWEST) & next & (LOWEST << 7) != 0;
            if !has_ff {
                let bytes = (64 - self.filled) / 8;
                // All that fits; the rest of the eight is read again.
                self.buffer |= next >> (64 - bytes * 8) << (64 - bytes * 8) >> self.filled;
                self.filled += bytes * 8;
                self.at += bytes as usize;
                return;
            }
        }
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

    /// At most as many as `peek` showed.
    #[inline]
    pub(super) fn skip(&mut self, count: u32) {
        if self.filled < count {
            self.fill();
        }
        self.buffer <<= count;
        self.filled -= count;
    }

    /// At most 16.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> u32 {
        let bits = (u64::from(self.peek()) << count >> Self::WINDOW) as u32;
        self.skip(count);
        bits
    }

    /// Whether more was read than there is.
    #[inline]
    pub(super) fn overdrawn(&self) -> bool {
        self.borrowed > self.filled
    }

    /// How many bytes follow unread before the next marker, and what follows from that marker on.
    pub(super) fn finish(self) -> (usize, &'a [u8]) {
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
            assert_eq!(huffman.next(&mut bits), Some(*symbol));
            assert!(!bits.overdrawn());
        }
        assert_eq!(bits.read(2), 3);
        assert!(!bits.overdrawn());
        bits.skip(1);
        assert!(bits.overdrawn());
    }

    #[test]
    fn no_code_is_like_these_bits() {
        let mut counts = [0; 16];
        counts[1] = 1;
        let huffman = Huffman::new(&counts, &[7]).expect("a table");
        assert_eq!(huffman.next(&mut Bits::new(&[0x20])), Some(7));
        assert_eq!(huffman.next(&mut Bits::new(&[0x40])), None);
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
