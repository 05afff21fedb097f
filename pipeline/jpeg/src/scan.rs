//! A pass over the picture.

use std::ops::{Range, RangeInclusive};

use crate::{
    frame::{Component, Frame},
    huffman::{Bits, Huffman},
    tables::Tables,
    tally::Tally,
};

const RESTARTS: RangeInclusive<u8> = 0xd0..=0xd7;

/// Which blocks it goes over, and what of them it tells.
pub(crate) struct Scan<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) pass: Pass,
    units: (usize, usize),
}

/// A component in a scan: how many of its blocks are in a unit, and the codes they are read with.
pub(crate) struct Part<'a> {
    /// Which of the frame's.
    pub(crate) component: usize,
    across: usize,
    down: usize,
    dc: Option<&'a Huffman>,
    ac: Option<&'a Huffman>,
}

/// What of each block is told. `shift` bits of every number are left for later passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Everything,
    Means { shift: u32 },
    MeansAgain { shift: u32 },
    Details(Band),
    DetailsAgain(Band),
}

/// The frequencies from one to another, in the file's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) shift: u32,
}

/// Who takes what is read.
pub(crate) trait Blocks {
    /// After this nothing is as before: what is told by differences begins anew.
    fn restart(&mut self);

    /// Reads the block of a part that is so many across and down. `None` where the data contradicts itself.
    fn read(&mut self, bits: &mut Bits<'_>, part: usize, at: (usize, usize)) -> Option<()>;
}

impl<'a> Scan<'a> {
    /// Of a scan's header. `None` where it cannot be: without tables, of unknown components or frequencies.
    pub(crate) fn read(header: &[u8], frame: &Frame, tables: &'a Tables) -> Option<Self> {
        let (count, after) = header.split_first()?;
        let (named, after) = after.split_at_checked(usize::from(*count) * 2)?;
        let [from, to, approximation, ..] = *after else { return None };
        let pass = Pass::of(frame.progressive, from.into(), to.into(), approximation)?;
        let mut parts = Vec::with_capacity(frame.components().len());
        for named in named.chunks_exact(2) {
            parts.push(Part::of(named[0], named[1], &parts, frame, tables)?);
        }
        let mut units = frame.units();
        // A component alone has its blocks row by row, and only those within the picture.
        if let [part] = parts.as_mut_slice() {
            units = frame.blocks(&frame.components()[part.component]);
            (part.across, part.down) = (1, 1);
        }
        let can_be_read = pass.parts().contains(&parts.len()) && parts.iter().all(|part| pass.has_codes(part));
        can_be_read.then_some(Self { parts, pass, units })
    }

    /// Interval by interval, each up to a restart marker.
    pub(crate) fn walk(&self, data: &[u8], interval: usize, blocks: &mut impl Blocks) -> Tally {
        let total = self.units.0 * self.units.1;
        let interval = if interval == 0 { total } else { interval };
        let mut tally = Tally { units: total as u64, ..Tally::default() };
        let (mut rest, mut from) = (data, 0);
        while from < total {
            let to = total.min(from + interval);
            let mut bits = Bits::new(rest);
            let read = self.interval(&mut bits, from..to, blocks);
            let (left_over, after) = bits.finish();
            tally.bytes += (rest.len() - after.len()) as u64;
            if read == to - from {
                tally.left_over += left_over as u64;
            }
            tally.missing += (to - from - read) as u64;
            from = to;
            rest = match after.get(fill_bytes(after)..) {
                Some([0xff, marker, after @ ..]) if RESTARTS.contains(marker) => after,
                _ => break,
            };
        }
        tally.missing += (total - from) as u64;
        tally
    }

    /// How many of these units there are.
    fn interval(&self, bits: &mut Bits<'_>, units: Range<usize>, blocks: &mut impl Blocks) -> usize {
        let first = units.start;
        blocks.restart();
        for unit in units.clone() {
            if self.unit(bits, unit, blocks).is_none() || bits.overdrawn() {
                return unit - first;
            }
        }
        units.len()
    }

    fn unit(&self, bits: &mut Bits<'_>, unit: usize, blocks: &mut impl Blocks) -> Option<()> {
        let (x, y) = (unit % self.units.0, unit / self.units.0);
        for (number, part) in self.parts.iter().enumerate() {
            for down in 0..part.down {
                for across in 0..part.across {
                    blocks.read(bits, number, (x * part.across + across, y * part.down + down))?;
                }
            }
        }
        Some(())
    }
}

/// How many bytes stand before a marker for nothing: any number of 0xff may.
fn fill_bytes(data: &[u8]) -> usize {
    data.windows(2).take_while(|pair| **pair == [0xff, 0xff]).count()
}

impl<'a> Part<'a> {
    /// Where several components have one name, it is the next that is not in the scan yet.
    fn of(id: u8, codes: u8, before: &[Self], frame: &Frame, tables: &'a Tables) -> Option<Self> {
        let is_free = |number: usize| before.iter().all(|part| part.component != number);
        let mut components = frame.components().iter().enumerate();
        let (component, _) = components.find(|(number, component)| component.id == id && is_free(*number))?;
        let Component { across, down, .. } = frame.components()[component];
        Some(Self { component, across, down, dc: tables.dc(codes >> 4), ac: tables.ac(codes & 15) })
    }

    /// For the means of blocks.
    #[inline(always)]
    pub(crate) fn dc(&self) -> Option<&'a Huffman> {
        self.dc
    }

    /// For everything else.
    #[inline(always)]
    pub(crate) fn ac(&self) -> Option<&'a Huffman> {
        self.ac
    }
}

impl Pass {
    fn of(progressive: bool, from: usize, to: usize, approximation: u8) -> Option<Self> {
        let (refines, shift) = (approximation >> 4 != 0, u32::from(approximation & 15));
        match (progressive, from, refines) {
            (false, ..) => Some(Self::Everything),
            (true, ..) if shift > 13 => None,
            (true, 0, false) => Some(Self::Means { shift }),
            (true, 0, true) => Some(Self::MeansAgain { shift }),
            _ if to > 63 || from > to => None,
            (true, _, false) => Some(Self::Details(Band { from, to, shift })),
            (true, _, true) => Some(Self::DetailsAgain(Band { from, to, shift })),
        }
    }

    /// How many components may be in it: details are told of one at a time. More would be work without end, for few bytes.
    fn parts(self) -> RangeInclusive<usize> {
        match self {
            Self::Everything | Self::Means { .. } | Self::MeansAgain { .. } => 1..=4,
            Self::Details(_) | Self::DetailsAgain(_) => 1..=1,
        }
    }

    fn has_codes(self, part: &Part<'_>) -> bool {
        match self {
            Self::Everything => part.dc.is_some() && part.ac.is_some(),
            Self::Means { .. } => part.dc.is_some(),
            Self::MeansAgain { .. } => true,
            Self::Details(_) | Self::DetailsAgain(_) => part.ac.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_told_apart() {
        let progressive = |from, to, approximation| Pass::of(true, from, to, approximation);
        assert_eq!(Pass::of(false, 0, 63, 0), Some(Pass::Everything));
        assert_eq!(progressive(0, 0, 0x01), Some(Pass::Means { shift: 1 }));
        assert_eq!(progressive(0, 0, 0x10), Some(Pass::MeansAgain { shift: 0 }));
        assert_eq!(progressive(1, 5, 0x02), Some(Pass::Details(Band { from: 1, to: 5, shift: 2 })));
        assert_eq!(progressive(1, 63, 0x21), Some(Pass::DetailsAgain(Band { from: 1, to: 63, shift: 1 })));
        for (from, to, approximation) in [(5, 4, 0), (1, 64, 0), (1, 5, 0x0e)] {
            assert_eq!(progressive(from, to, approximation), None);
        }
    }

    #[test]
    fn details_are_of_one_component() {
        assert!(!Pass::Details(Band { from: 1, to: 5, shift: 0 }).parts().contains(&2));
        assert!(Pass::Means { shift: 0 }.parts().contains(&4));
        assert!(!Pass::Everything.parts().contains(&0) && !Pass::Everything.parts().contains(&5));
    }
}
