//! Pictures told in several passes: blocks become samples when all of them are read.

use crate::{
    coefficients::{Coefficients, Pending},
    huffman::{Bits, Huffman, Next},
    scan::{Band, Blocks, Part, Pass},
};

/// One pass over the planes of a picture.
pub(crate) struct Progressive<'a> {
    pub(crate) parts: &'a [Part<'a>],
    pub(crate) pass: Pass,
    /// Of all components.
    pub(crate) coefficients: &'a mut [Coefficients],
    /// For each part, that of the block before.
    pub(crate) means: Vec<i32>,
    /// How many blocks, from the next one on, have nothing new.
    pub(crate) idle: u32,
}

impl Blocks for Progressive<'_> {
    fn restart(&mut self) {
        self.means.fill(0);
        self.idle = 0;
    }

    #[inline]
    fn read(&mut self, bits: &mut Bits<'_>, part: usize, (across, down): (usize, usize)) -> Option<()> {
        let Part { component, .. } = self.parts[part];
        let mut block = self.coefficients[component].block(across, down)?;
        match self.pass {
            Pass::Everything => None,
            Pass::Means { shift } => {
                let mean = &mut self.means[part];
                *mean = mean.wrapping_add(self.parts[part].dc()?.difference(bits)?);
                *block.get(0)? = (*mean << shift) as i16;
                Some(())
            }
            Pass::MeansAgain { shift } => {
                *block.get(0)? |= (bits.read(1) << shift) as i16;
                Some(())
            }
            Pass::Details(band) => details(bits, self.parts[part].ac()?, &mut self.idle, &mut block, band),
            Pass::DetailsAgain(band) => details_again(bits, self.parts[part].ac()?, &mut self.idle, &mut block, band),
        }
    }
}

#[inline]
fn details(bits: &mut Bits<'_>, codes: &Huffman, idle: &mut u32, block: &mut Pending<'_>, band: Band) -> Option<()> {
    let Band { from, to, shift } = band;
    if *idle > 0 {
        *idle -= 1;
        return Some(());
    }
    let mut at = from;
    while at <= to {
        match codes.next(bits)? {
            Next::Value { zeros, value } => {
                at += usize::from(zeros);
                if at > 63 {
                    return None;
                }
                block.learn(at, value << shift);
                at += 1;
            }
            Next::Zeros(15) => at += 16,
            Next::Zeros(size) => {
                *idle = (1 << size) - 1 + bits.read(size.into());
                break;
            }
        }
    }
    Some(())
}

/// A bit for each frequency that is known already, between those that are new.
fn details_again(
    bits: &mut Bits<'_>,
    codes: &Huffman,
    idle: &mut u32,
    block: &mut Pending<'_>,
    band: Band,
) -> Option<()> {
    let Band { from, to, shift } = band;
    let up_to = |number: usize| u64::MAX >> (63 - number);
    let mut left = up_to(to) >> from << from;
    while *idle == 0 && left != 0 {
        let (zeros, value) = match codes.next(bits)? {
            // One bit, whatever the file says: its sign.
            Next::Value { zeros, value } => (zeros, Some(if value > 0 { 1 } else { -1 } << shift)),
            Next::Zeros(15) => (15, None),
            Next::Zeros(size) => {
                *idle = (1 << size) + bits.read(size.into());
                break;
            }
        };
        let mut unknown = left & !*block.known;
        for _ in 0..zeros {
            unknown &= unknown.wrapping_sub(1);
        }
        let new = unknown & unknown.wrapping_neg();
        let before = if new == 0 { left } else { left & (new - 1) };
        refine(bits, block, before & *block.known, shift);
        if let Some(value) = value {
            if new == 0 {
                return None;
            }
            block.learn(new.trailing_zeros() as usize, value);
        }
        left &= !(before | new);
    }
    if *idle > 0 {
        refine(bits, block, left & *block.known, shift);
        *idle -= 1;
    }
    Some(())
}

/// A bit for each of these frequencies: whether it is one step larger than it was.
#[inline]
fn refine(bits: &mut Bits<'_>, block: &mut Pending<'_>, mut numbers: u64, shift: u32) {
    while numbers != 0 {
        let count = numbers.count_ones().min(16);
        let larger = bits.read(count);
        for bit in (0..count).rev() {
            let number = numbers.trailing_zeros() as usize;
            numbers &= numbers - 1;
            if larger >> bit & 1 == 1
                && let Some(value) = block.get(number)
            {
                *value = value.wrapping_add(if *value > 0 { 1 } else { -1 } << shift);
            }
        }
    }
}
