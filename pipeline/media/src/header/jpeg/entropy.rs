//! How much of a JPEG's picture is really in the file.
//!
//! Decoders paint what they cannot read grey, or repeat what was before, and say nothing. So the coded data is read here as
//! a decoder reads it, without making a pixel of it: blocks are missing where it ends too early or contradicts itself, and
//! left over where it does not end with the last block. A single wrong bit mostly shows in neither, and is not looked for.

use std::ops::{Range, RangeInclusive};

use sparks_domain::{RejectCode, Rejection};

use super::{
    Segment,
    frame::{Component, Frame},
    huffman::{Bits, Huffman},
};
use crate::reject;

const TABLES: u8 = 0xc4;
const RESTART_INTERVAL: u8 = 0xdd;
const RESTARTS: RangeInclusive<u8> = 0xd0..=0xd7;

/// A scan that misses no more than one in so many blocks is taken: cameras do forget the last few.
const MISSING_SHARE: u64 = 200;
/// Padding before a marker is no damage, up to this much and a share of the data.
const PADDING: u64 = 1024;

/// Goes along with the segments of a file.
pub(super) struct Watch<'a> {
    frame: &'a Frame,
    dc: [Option<Huffman>; 4],
    ac: [Option<Huffman>; 4],
    restart_interval: usize,
    /// For each block of each component, which coefficients are not zero. Refining passes cannot be read without.
    known: Vec<Vec<u64>>,
}

/// One pass over the picture.
struct Scan<'a> {
    planes: Vec<Plane<'a>>,
    kind: Kind,
    units: (usize, usize),
}

/// A component in a scan: how it stands in a unit, and how its blocks are read.
struct Plane<'a> {
    index: usize,
    across: usize,
    down: usize,
    stride: usize,
    dc: Option<&'a Huffman>,
    ac: Option<&'a Huffman>,
}

#[derive(Clone, Copy)]
enum Kind {
    Sequential,
    DcFirst,
    DcAgain,
    AcFirst { from: usize, to: usize },
    AcAgain { from: usize, to: usize },
}

/// What came of a scan.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    units: u64,
    missing: u64,
    bytes: u64,
    left_over: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(frame: &'a Frame) -> Self {
        let known = |component: &Component| {
            let (across, down) = frame.units();
            vec![0; across * down * component.across * component.down]
        };
        let known = if frame.progressive { frame.components().iter().map(known).collect() } else { Vec::new() };
        Self { frame, dc: Default::default(), ac: Default::default(), restart_interval: 0, known }
    }

    /// What cannot be judged, such as a scan without its tables, is left to the decoder.
    pub(super) fn see(&mut self, segment: &Segment<'_>) -> Result<(), Rejection> {
        match segment.marker {
            TABLES => self.learn(segment.content),
            RESTART_INTERVAL => {
                let interval = segment.content.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
                self.restart_interval = interval.into();
            }
            super::START_OF_SCAN => {
                let mut known = std::mem::take(&mut self.known);
                let tally =
                    self.scan(segment.content).map(|scan| scan.walk(segment.rest, self.restart_interval, &mut known));
                self.known = known;
                return tally.map_or(Ok(()), |tally| tally.judge());
            }
            _ => {}
        }
        Ok(())
    }

    fn learn(&mut self, mut content: &[u8]) {
        while let Some((class, after)) = content.split_first()
            && let Some((counts, after)) = after.split_first_chunk()
            && let Some((symbols, after)) =
                after.split_at_checked(counts.iter().map(|count: &u8| usize::from(*count)).sum())
        {
            let tables = if class >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            if let Some(table) = tables.get_mut(usize::from(class & 15)) {
                *table = Huffman::new(counts, symbols);
            }
            content = after;
        }
    }

    fn scan(&self, header: &[u8]) -> Option<Scan<'_>> {
        let (count, after) = header.split_first()?;
        let (named, after) = after.split_at_checked(usize::from(*count) * 2)?;
        let [from, to, approximation, ..] = *after else { return None };
        let kind = Kind::of(self.frame.progressive, from.into(), to.into(), approximation >> 4)?;
        let mut planes =
            named.chunks_exact(2).map(|named| self.plane(named[0], named[1])).collect::<Option<Vec<_>>>()?;
        let mut units = self.frame.units();
        // A component alone has its blocks row by row, and only those within the picture.
        if let [plane] = planes.as_mut_slice() {
            units = self.frame.blocks(&self.frame.components()[plane.index]);
            (plane.across, plane.down) = (1, 1);
        }
        let can_be_judged = !planes.is_empty() && planes.iter().all(|plane| kind.has_tables(plane));
        can_be_judged.then_some(Scan { planes, kind, units })
    }

    fn plane(&self, id: u8, tables: u8) -> Option<Plane<'_>> {
        let index = self.frame.components().iter().position(|component| component.id == id)?;
        let Component { across, down, .. } = self.frame.components()[index];
        let dc = self.dc.get(usize::from(tables >> 4))?.as_ref();
        let ac = self.ac.get(usize::from(tables & 15))?.as_ref();
        Some(Plane { index, across, down, stride: self.frame.units().0 * across, dc, ac })
    }
}

impl Kind {
    fn of(progressive: bool, from: usize, to: usize, refined: u8) -> Option<Self> {
        match (progressive, from, refined) {
            (false, ..) => Some(Self::Sequential),
            (true, 0, 0) => Some(Self::DcFirst),
            (true, 0, _) => Some(Self::DcAgain),
            _ if to > 63 || from > to => None,
            (true, _, 0) => Some(Self::AcFirst { from, to }),
            (true, _, _) => Some(Self::AcAgain { from, to }),
        }
    }

    fn has_tables(self, plane: &Plane<'_>) -> bool {
        match self {
            Self::Sequential => plane.dc.is_some() && plane.ac.is_some(),
            Self::DcFirst => plane.dc.is_some(),
            Self::DcAgain => true,
            Self::AcFirst { .. } | Self::AcAgain { .. } => plane.ac.is_some(),
        }
    }
}

impl Scan<'_> {
    /// Interval by interval, each up to a restart marker.
    fn walk(&self, data: &[u8], interval: usize, known: &mut [Vec<u64>]) -> Tally {
        let total = self.units.0 * self.units.1;
        let interval = if interval == 0 { total } else { interval };
        let mut tally = Tally { units: total as u64, ..Tally::default() };
        let (mut rest, mut from) = (data, 0);
        while from < total {
            let to = total.min(from + interval);
            let mut bits = Bits::new(rest);
            let read = self.interval(&mut bits, from..to, known);
            let (left_over, after) = bits.finish();
            tally.bytes += (rest.len() - after.len()) as u64;
            if read == to - from {
                tally.left_over += left_over as u64;
            }
            tally.missing += (to - from - read) as u64;
            from = to;
            rest = match after {
                [0xff, marker, after @ ..] if RESTARTS.contains(marker) => after,
                _ => break,
            };
        }
        tally.missing += (total - from) as u64;
        tally
    }

    /// How many of these units there are.
    fn interval(&self, bits: &mut Bits<'_>, units: Range<usize>, known: &mut [Vec<u64>]) -> usize {
        let first = units.start;
        let mut run = 0;
        for unit in units.clone() {
            if self.unit(bits, unit, &mut run, known).is_none() || bits.overdrawn() {
                return unit - first;
            }
        }
        units.len()
    }

    /// `None` where the data contradicts itself.
    fn unit(&self, bits: &mut Bits<'_>, unit: usize, run: &mut u32, known: &mut [Vec<u64>]) -> Option<()> {
        let (x, y) = (unit % self.units.0, unit / self.units.0);
        for plane in &self.planes {
            for down in 0..plane.down {
                let row = (y * plane.down + down) * plane.stride + x * plane.across;
                for block in row..row + plane.across {
                    match known.get_mut(plane.index).and_then(|plane| plane.get_mut(block)) {
                        Some(known) => plane.pass(self.kind, bits, run, known)?,
                        None => plane.sequential(bits)?,
                    }
                }
            }
        }
        Some(())
    }
}

/// Symbols of coefficients: zeros before it, and how many bits it has.
const ZEROS: u8 = 15;
const COEFFICIENTS: usize = 64;

impl Plane<'_> {
    fn sequential(&self, bits: &mut Bits<'_>) -> Option<()> {
        self.dc_first(bits)?;
        let mut run = 0;
        self.ac_first(bits, &mut run, &mut 0, 1, COEFFICIENTS - 1)
    }

    fn pass(&self, kind: Kind, bits: &mut Bits<'_>, run: &mut u32, known: &mut u64) -> Option<()> {
        match kind {
            Kind::Sequential => self.sequential(bits),
            Kind::DcFirst => self.dc_first(bits),
            Kind::DcAgain => {
                bits.skip(1);
                Some(())
            }
            Kind::AcFirst { from, to } => self.ac_first(bits, run, known, from, to),
            Kind::AcAgain { from, to } => self.ac_again(bits, run, known, from, to),
        }
    }

    fn dc_first(&self, bits: &mut Bits<'_>) -> Option<()> {
        let size = self.dc?.next(bits)?;
        bits.skip(u32::from(size).min(16));
        (size <= 16).then_some(())
    }

    #[inline]
    fn ac_first(&self, bits: &mut Bits<'_>, run: &mut u32, known: &mut u64, from: usize, to: usize) -> Option<()> {
        if *run > 0 {
            *run -= 1;
            return Some(());
        }
        let table = self.ac?;
        let mut at = from;
        while at <= to {
            let symbol = table.next(bits)?;
            let (zeros, size) = (symbol >> 4, symbol & 15);
            if size == 0 && zeros < ZEROS {
                *run = (1 << zeros) - 1 + bits.read(zeros.into());
                break;
            }
            at += usize::from(zeros);
            if at >= COEFFICIENTS {
                return None;
            }
            if size > 0 {
                bits.skip(size.into());
                *known |= 1 << at;
            }
            at += 1;
        }
        Some(())
    }

    /// A bit for each coefficient that is known already, between those that are new.
    fn ac_again(&self, bits: &mut Bits<'_>, run: &mut u32, known: &mut u64, from: usize, to: usize) -> Option<()> {
        let mut at = from;
        while *run == 0 && at <= to {
            let symbol = self.ac?.next(bits)?;
            let (mut zeros, size) = (symbol >> 4, symbol & 15);
            if size == 0 && zeros < ZEROS {
                *run = (1 << zeros) + bits.read(zeros.into());
                break;
            }
            if size > 0 {
                bits.skip(1);
            }
            while at <= to {
                if *known >> at & 1 == 1 {
                    bits.skip(1);
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                at += 1;
            }
            if size > 0 {
                if at > to {
                    return None;
                }
                *known |= 1 << at;
            }
            at += 1;
        }
        if *run > 0 {
            (at..=to).filter(|at| *known >> at & 1 == 1).for_each(|_| bits.skip(1));
            *run -= 1;
        }
        Some(())
    }
}

impl Tally {
    fn judge(&self) -> Result<(), Rejection> {
        let what = if self.missing > self.units / MISSING_SHARE {
            let percent = (self.missing * 100 / self.units.max(1)).max(1);
            format!("{percent}% of its picture cannot be read")
        } else if self.left_over > PADDING + self.bytes / MISSING_SHARE {
            format!("{} bytes of its picture are in no place", self.left_over)
        } else {
            return Ok(());
        };
        Err(reject(RejectCode::Damaged, format!("the JPEG is damaged: {what}; take another copy")))
    }
}
