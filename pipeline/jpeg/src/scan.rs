//! Scan headers (T.81 B.2.3) and the traversal of a scan's blocks.

use std::ops::{Range, RangeInclusive};

use crate::{
    completeness::Completeness,
    frame::{Component, FrameHeader},
    huffman::{BitReader, HuffmanTable},
    tables::Tables,
};

const RESTARTS: RangeInclusive<u8> = 0xd0..=0xd7;

/// A scan: its components, and which part of their coefficients it contains.
pub(crate) struct Scan<'a> {
    pub(crate) components: Vec<ScanComponent<'a>>,
    pub(crate) kind: ScanKind,
    mcus: (usize, usize),
}

/// A component of a scan: its blocks per MCU, and its Huffman tables.
pub(crate) struct ScanComponent<'a> {
    /// Index among the components of the frame.
    pub(crate) component: usize,
    h: usize,
    v: usize,
    dc: Option<&'a HuffmanTable>,
    ac: Option<&'a HuffmanTable>,
}

/// The coefficients that a scan contains (T.81 G.1.1). The lowest `shift` bits of each are left to later scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanKind {
    Sequential,
    DcFirst { shift: u32 },
    DcRefine { shift: u32 },
    AcFirst(SpectralBand),
    AcRefine(SpectralBand),
}

/// A band of AC coefficients in zigzag order, both ends included (spectral selection).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpectralBand {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) shift: u32,
}

/// Decodes the blocks of a scan.
pub(crate) trait BlockReader {
    /// Resets the predictions after a restart marker.
    fn restart(&mut self);

    /// Reads the block of a component at this column and row. Returns `None` if the data is invalid.
    fn read(&mut self, bits: &mut BitReader<'_>, component: usize, at: (usize, usize)) -> Option<()>;
}

impl<'a> Scan<'a> {
    /// Parses a scan header. Returns `None` if tables are missing or components or coefficients are unknown.
    pub(crate) fn read(header: &[u8], frame: &FrameHeader, tables: &'a Tables) -> Option<Self> {
        let (count, after) = header.split_first()?;
        let (specs, after) = after.split_at_checked(usize::from(*count) * 2)?;
        let [start, end, approximation, ..] = *after else { return None };
        let kind = ScanKind::new(frame.progressive, start.into(), end.into(), approximation)?;
        let mut components = Vec::with_capacity(frame.components().len());
        for spec in specs.chunks_exact(2) {
            components.push(ScanComponent::new(spec[0], spec[1], &components, frame, tables)?);
        }
        let mut mcus = frame.mcus();
        // A non-interleaved scan has the component's blocks row by row, and only those within the image.
        if let [scanned] = components.as_mut_slice() {
            mcus = frame.block_count(&frame.components()[scanned.component]);
            (scanned.h, scanned.v) = (1, 1);
        }
        let is_valid = kind.component_counts().contains(&components.len())
            && components.iter().all(|scanned| kind.has_tables(scanned));
        is_valid.then_some(Self { components, kind, mcus })
    }

    /// Decodes the scan, one restart interval after the other. An interval of 0 is the whole scan.
    pub(crate) fn decode(&self, data: &[u8], interval: usize, reader: &mut impl BlockReader) -> Completeness {
        let total = self.mcus.0 * self.mcus.1;
        let interval = if interval == 0 { total } else { interval };
        let mut completeness = Completeness { mcus: total as u64, ..Completeness::default() };
        let (mut rest, mut start) = (data, 0);
        while start < total {
            let end = total.min(start + interval);
            let mut bits = BitReader::new(rest);
            let decoded = self.decode_interval(&mut bits, start..end, reader);
            let (unread, after) = bits.finish();
            completeness.bytes += (rest.len() - after.len()) as u64;
            if decoded == end - start {
                completeness.unread += unread as u64;
            }
            completeness.missing += (end - start - decoded) as u64;
            start = end;
            rest = match after.get(fill_bytes(after)..) {
                Some([0xff, marker, after @ ..]) if RESTARTS.contains(marker) => after,
                _ => break,
            };
        }
        completeness.missing += (total - start) as u64;
        completeness
    }

    /// Decodes a range of MCUs and returns how many of them could be read.
    fn decode_interval(&self, bits: &mut BitReader<'_>, mcus: Range<usize>, reader: &mut impl BlockReader) -> usize {
        let first = mcus.start;
        reader.restart();
        for mcu in mcus.clone() {
            if self.decode_mcu(bits, mcu, reader).is_none() || bits.is_overdrawn() {
                return mcu - first;
            }
        }
        mcus.len()
    }

    fn decode_mcu(&self, bits: &mut BitReader<'_>, mcu: usize, reader: &mut impl BlockReader) -> Option<()> {
        let (x, y) = (mcu % self.mcus.0, mcu / self.mcus.0);
        for (number, component) in self.components.iter().enumerate() {
            for row in 0..component.v {
                for column in 0..component.h {
                    reader.read(bits, number, (x * component.h + column, y * component.v + row))?;
                }
            }
        }
        Some(())
    }
}

/// Returns the number of fill bytes: any number of 0xff may precede a marker.
fn fill_bytes(data: &[u8]) -> usize {
    data.windows(2).take_while(|pair| **pair == [0xff, 0xff]).count()
}

impl<'a> ScanComponent<'a> {
    /// Finds the component with this id. Among several with the same id it is the next that is not in the scan yet.
    fn new(id: u8, selectors: u8, before: &[Self], frame: &FrameHeader, tables: &'a Tables) -> Option<Self> {
        let is_free = |number: usize| before.iter().all(|scanned| scanned.component != number);
        let mut components = frame.components().iter().enumerate();
        let (component, _) = components.find(|(number, component)| component.id == id && is_free(*number))?;
        let Component { h, v, .. } = frame.components()[component];
        Some(Self { component, h, v, dc: tables.dc(selectors >> 4), ac: tables.ac(selectors & 15) })
    }

    /// Returns the Huffman table for DC coefficients.
    #[inline(always)]
    pub(crate) fn dc(&self) -> Option<&'a HuffmanTable> {
        self.dc
    }

    /// Returns the Huffman table for AC coefficients.
    #[inline(always)]
    pub(crate) fn ac(&self) -> Option<&'a HuffmanTable> {
        self.ac
    }
}

impl ScanKind {
    fn new(progressive: bool, start: usize, end: usize, approximation: u8) -> Option<Self> {
        let (is_refinement, shift) = (approximation >> 4 != 0, u32::from(approximation & 15));
        match (progressive, start, is_refinement) {
            (false, ..) => Some(Self::Sequential),
            (true, ..) if shift > 13 => None,
            (true, 0, false) => Some(Self::DcFirst { shift }),
            (true, 0, true) => Some(Self::DcRefine { shift }),
            _ if end > 63 || start > end => None,
            (true, _, false) => Some(Self::AcFirst(SpectralBand { start, end, shift })),
            (true, _, true) => Some(Self::AcRefine(SpectralBand { start, end, shift })),
        }
    }

    /// Returns the allowed numbers of components. AC scans have exactly one (T.81 G.1.1.1.1); with more, few bytes would cause
    /// unbounded work.
    fn component_counts(self) -> RangeInclusive<usize> {
        match self {
            Self::Sequential | Self::DcFirst { .. } | Self::DcRefine { .. } => 1..=4,
            Self::AcFirst(_) | Self::AcRefine(_) => 1..=1,
        }
    }

    fn has_tables(self, scanned: &ScanComponent<'_>) -> bool {
        match self {
            Self::Sequential => scanned.dc.is_some() && scanned.ac.is_some(),
            Self::DcFirst { .. } => scanned.dc.is_some(),
            Self::DcRefine { .. } => true,
            Self::AcFirst(_) | Self::AcRefine(_) => scanned.ac.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_kinds_are_recognised() {
        let progressive = |start, end, approximation| ScanKind::new(true, start, end, approximation);
        assert_eq!(ScanKind::new(false, 0, 63, 0), Some(ScanKind::Sequential));
        assert_eq!(progressive(0, 0, 0x01), Some(ScanKind::DcFirst { shift: 1 }));
        assert_eq!(progressive(0, 0, 0x10), Some(ScanKind::DcRefine { shift: 0 }));
        assert_eq!(progressive(1, 5, 0x02), Some(ScanKind::AcFirst(SpectralBand { start: 1, end: 5, shift: 2 })));
        assert_eq!(progressive(1, 63, 0x21), Some(ScanKind::AcRefine(SpectralBand { start: 1, end: 63, shift: 1 })));
        for (start, end, approximation) in [(5, 4, 0), (1, 64, 0), (1, 5, 0x0e)] {
            assert_eq!(progressive(start, end, approximation), None);
        }
    }

    #[test]
    fn ac_scans_have_one_component() {
        assert!(!ScanKind::AcFirst(SpectralBand { start: 1, end: 5, shift: 0 }).component_counts().contains(&2));
        assert!(ScanKind::DcFirst { shift: 0 }.component_counts().contains(&4));
        let counts = ScanKind::Sequential.component_counts();
        assert!(!counts.contains(&0) && !counts.contains(&5));
    }
}
