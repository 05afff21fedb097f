//! The standard's arithmetic coder.

/// Writes bits, each as cheaply as it was likely.
#[derive(Debug)]
pub(crate) struct Bits {
    /// One less than the width of the interval.
    range: u32,
    value: u32,
    /// Bytes of ones that wait for a carry.
    waiting: usize,
    pending: i32,
    bytes: Vec<u8>,
}

impl Bits {
    pub(crate) fn new(expected_bytes: usize) -> Self {
        Self { range: 254, value: 0, waiting: 0, pending: -8, bytes: Vec::with_capacity(expected_bytes) }
    }

    /// A bit that is 0 in `likelihood` of 256 cases.
    #[inline(always)]
    pub(crate) fn put(&mut self, bit: bool, likelihood: u8) {
        // Without branches on the bit: nobody can foretell it, or it would not be worth writing.
        let split = (self.range * u32::from(likelihood)) >> 8;
        let above = split + 1;
        self.value += if bit { above } else { 0 };
        self.range = if bit { self.range - above } else { split };
        let shift = (self.range + 1).leading_zeros() - 24;
        self.range = ((self.range + 1) << shift) - 1;
        self.value <<= shift;
        self.pending += shift as i32;
        if self.pending > 0 {
            self.flush();
        }
    }

    /// A number of so many bits, each as likely as not.
    pub(crate) fn number(&mut self, number: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.put(number >> bit & 1 == 1, 128);
        }
    }

    /// Whether there is a number, then the number and its sign.
    pub(crate) fn optional(&mut self, number: i32, bits: u32) {
        self.put(number != 0, 128);
        if number != 0 {
            self.number(number.unsigned_abs(), bits);
            self.put(number < 0, 128);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.number(0, (9 - self.pending) as u32);
        self.pending = 0;
        self.flush();
        self.bytes
    }

    fn flush(&mut self) {
        let shift = 8 + self.pending;
        let bits = self.value >> shift;
        self.value -= bits << shift;
        self.pending -= 8;
        if bits & 0xff == 0xff {
            self.waiting += 1;
            return;
        }
        let carry = bits & 0x100 != 0;
        if carry && let Some(last) = self.bytes.last_mut() {
            *last += 1;
        }
        let waited = if carry { 0 } else { 0xff };
        self.bytes.extend(std::iter::repeat_n(waited, self.waiting));
        self.waiting = 0;
        self.bytes.push(bits as u8);
    }
}
