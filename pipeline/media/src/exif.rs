//! EXIF fields: orientation and capture time. An unreadable field is absent, never an error.
//!
//! A general reader builds the whole tree, and directories (IFDs) may point at each other, so that 64 KB unfold into gigabytes.
//! This reader looks up single fields in two directories, each in one pass.

use sparks_domain::TakenAt;

use crate::{orientation::Orientation, taken_at};

/// The EXIF fields in use.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Exif {
    pub(crate) orientation: Orientation,
    pub(crate) taken_at: Option<TakenAt>,
}

mod tag {
    pub(super) const ORIENTATION: u16 = 0x0112;
    pub(super) const DATE_TIME: u16 = 0x0132;
    pub(super) const EXIF_DIRECTORY: u16 = 0x8769;
    pub(super) const DATE_TIME_ORIGINAL: u16 = 0x9003;
    pub(super) const DATE_TIME_DIGITIZED: u16 = 0x9004;
    pub(super) const OFFSET_TIME: u16 = 0x9010;
    pub(super) const OFFSET_TIME_ORIGINAL: u16 = 0x9011;
    pub(super) const OFFSET_TIME_DIGITIZED: u16 = 0x9012;
}

impl Exif {
    /// Reads a TIFF structure.
    pub(crate) fn read(tiff: &[u8]) -> Self {
        let Some(tiff) = Tiff::open(tiff) else { return Self::default() };
        let main = tiff.u32(4).map(|at| at as usize);
        let exif = main.and_then(|main| tiff.number(main, tag::EXIF_DIRECTORY)).map(|at| at as usize);
        let read_time = |directory: Option<usize>, time, offset| {
            let offset = exif.and_then(|exif| tiff.text(exif, offset));
            taken_at::parse(tiff.text(directory?, time)?, offset)
        };
        Self {
            orientation: main
                .and_then(|main| tiff.number(main, tag::ORIENTATION))
                .and_then(Orientation::from_exif)
                .unwrap_or_default(),
            taken_at: read_time(exif, tag::DATE_TIME_ORIGINAL, tag::OFFSET_TIME_ORIGINAL)
                .or_else(|| read_time(exif, tag::DATE_TIME_DIGITIZED, tag::OFFSET_TIME_DIGITIZED))
                .or_else(|| read_time(main, tag::DATE_TIME, tag::OFFSET_TIME)),
        }
    }
}

/// A TIFF structure: image file directories (IFDs) in either byte order.
struct Tiff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

/// An IFD entry: field type, number of values, and the offset of the value or of the pointer to it.
struct Entry {
    field_type: u16,
    count: usize,
    at: usize,
}

impl<'a> Tiff<'a> {
    const ENTRY_BYTES: usize = 12;
    const BYTE: u16 = 1;
    const ASCII: u16 = 2;
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    const IFD: u16 = 13;

    fn open(bytes: &'a [u8]) -> Option<Self> {
        let big_endian = match bytes.first_chunk()? {
            b"II*\0" => false,
            b"MM\0*" => true,
            _ => return None,
        };
        Some(Self { bytes, big_endian })
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Returns the first entry with the tag.
    fn entry(&self, directory: usize, tag: u16) -> Option<Entry> {
        let count = usize::from(self.u16(directory)?);
        let at = (0..count)
            .map(|index| directory + 2 + index * Self::ENTRY_BYTES)
            .take_while(|at| at + Self::ENTRY_BYTES <= self.bytes.len())
            .find(|at| self.u16(*at) == Some(tag))?;
        Some(Entry { field_type: self.u16(at + 2)?, count: self.u32(at + 4)? as usize, at: at + 8 })
    }

    fn number(&self, directory: usize, tag: u16) -> Option<u32> {
        let entry = self.entry(directory, tag).filter(|entry| entry.count == 1)?;
        match entry.field_type {
            Self::BYTE => self.bytes.get(entry.at).copied().map(u32::from),
            Self::SHORT => self.u16(entry.at).map(u32::from),
            Self::LONG | Self::IFD => self.u32(entry.at),
            _ => None,
        }
    }

    fn text(&self, directory: usize, tag: u16) -> Option<&'a str> {
        let entry = self.entry(directory, tag).filter(|entry| entry.field_type == Self::ASCII)?;
        // Up to four bytes are stored in the entry itself.
        let start = if entry.count <= 4 { entry.at } else { self.u32(entry.at)? as usize };
        let bytes = self.bytes.get(start..)?.get(..entry.count)?;
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn both_byte_orders_are_read() {
        for big_endian in [false, true] {
            let tiff = samples::Exif { big_endian, ..samples::Exif::taken("2014:05:01 10:20:30", Some("+02:00")) };
            let exif = Exif::read(&tiff.orientation(6).bytes());
            assert_eq!(exif.orientation, Orientation::from_exif(6).expect("an orientation"));
            assert_eq!(exif.taken_at, Some(TakenAt("2014-05-01T10:20:30+02:00".into())));
        }
    }

    #[test]
    fn a_blank_time_falls_back_to_the_next_field() {
        let mut exif = samples::Exif::taken("    :  :     :  :  ", Some("+02:00"));
        exif.date_time = Some("2015:01:02 03:04:05".into());
        assert_eq!(Exif::read(&exif.bytes()).taken_at, Some(TakenAt("2015-01-02T03:04:05".into())));
    }

    #[test]
    fn malformed_exif_is_not_an_error() {
        let whole = samples::Exif::taken("2014:05:01 10:20:30", Some("+02:00")).orientation(6).bytes();
        for end in 0..whole.len() {
            Exif::read(&whole[..end]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[at] = value;
                Exif::read(&broken);
            }
        }
        assert_eq!(Exif::read(b"not a tiff at all"), Exif::default());
        assert_eq!(Exif::read(&samples::Exif::default().orientation(9).bytes()), Exif::default());
    }

    #[test]
    fn directories_that_point_at_themselves_are_cheap() {
        // Every entry of every directory points back at the directory.
        let entries = 5_000_u16;
        let mut tiff = b"MM\0*\0\0\0\x08".to_vec();
        tiff.extend(entries.to_be_bytes());
        tiff.extend(b"\x87\x69\0\x04\0\0\0\x01\0\0\0\x08".repeat(entries.into()));
        assert_eq!(Exif::read(&tiff), Exif::default());
    }
}
