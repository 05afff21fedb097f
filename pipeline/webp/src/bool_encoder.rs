//! The boolean entropy encoder (RFC 6386, section 7).

/// Encodes bits by arithmetic coding: the more probable a bit, the fewer bits it takes.
#[derive(Debug)]
pub(crate) struct BoolEncoder {
    /// One less than the width of the interval.
    range: u32,
    value: u32,
    /// Bytes of ones that wait for a carry (`run_` in libwebp).
    pending_ones: usize,
    /// Bits that are ready for output, minus eight (`nb_bits_` in libwebp).
    ready_bits: i32,
    bytes: Vec<u8>,
}

impl BoolEncoder {
    pub(crate) fn new(expected_bytes: usize) -> Self {
        Self { range: 254, value: 0, pending_ones: 0, ready_bits: -8, bytes: Vec::with_capacity(expected_bytes) }
    }

    /// Encodes a bit that is 0 in `probability` of 256 cases.
    #[inline(always)]
    pub(crate) fn put(&mut self, bit: bool, probability: u8) {
        // No branches on the bit: it is unpredictable by nature.
        let split = (self.range * u32::from(probability)) >> 8;
        let above = split + 1;
        self.value += if bit { above } else { 0 };
        self.range = if bit { self.range - above } else { split };
        let shift = (self.range + 1).leading_zeros() - 24;
        self.range = ((self.range + 1) << shift) - 1;
        self.value <<= shift;
        self.ready_bits += shift as i32;
        if self.ready_bits > 0 {
            self.flush();
        }
    }

    /// Encodes a number of this many bits, each with probability one half.
    pub(crate) fn put_literal(&mut self, number: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.put(number >> bit & 1 == 1, 128);
        }
    }

    /// Encodes whether the number is nonzero, then its magnitude and sign.
    pub(crate) fn put_optional(&mut self, number: i32, bits: u32) {
        self.put(number != 0, 128);
        if number != 0 {
            self.put_literal(number.unsigned_abs(), bits);
            self.put(number < 0, 128);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.put_literal(0, (9 - self.ready_bits) as u32);
        self.ready_bits = 0;
        self.flush();
        self.bytes
    }

    fn flush(&mut self) {
        let shift = 8 + self.ready_bits;
        let bits = self.value >> shift;
        self.value -= bits << shift;
        self.ready_bits -= 8;
        if bits & 0xff == 0xff {
            self.pending_ones += 1;
            return;
        }
        let carry = bits & 0x100 != 0;
        if carry && let Some(last) = self.bytes.last_mut() {
            *last += 1;
        }
        let byte = if carry { 0 } else { 0xff };
        self.bytes.extend(std::iter::repeat_n(byte, self.pending_ones));
        self.pending_ones = 0;
        self.bytes.push(bits as u8);
    }
}
