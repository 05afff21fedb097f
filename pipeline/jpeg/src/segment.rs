//! A JPEG's segments of marker and length, with pixels in between.

use memchr::memchr;

use crate::Error;

/// The markers that somebody asks for.
pub mod marker {
    /// Huffman tables.
    pub(crate) const HUFFMAN: u8 = 0xc4;
    /// Quantization tables.
    pub(crate) const QUANTIZATION: u8 = 0xdb;
    /// How many units there are between two restarts.
    pub(crate) const RESTART_INTERVAL: u8 = 0xdd;
    /// The end of the picture. What follows is somebody else's: videos of motion photos, further pictures.
    pub const END_OF_IMAGE: u8 = 0xd9;
    /// A pass over the picture.
    pub const START_OF_SCAN: u8 = 0xda;
    /// JFIF.
    pub(crate) const APP0: u8 = 0xe0;
    /// EXIF.
    pub const APP1: u8 = 0xe1;
    /// ICC profiles.
    pub const APP2: u8 = 0xe2;
    /// Adobe's word on colours.
    pub(crate) const APP14: u8 = 0xee;
}

/// A marker and what it comes with.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// The second of its two bytes.
    pub marker: u8,
    /// What its length covers.
    pub content: &'a [u8],
    /// What follows, for a scan its pixels.
    pub rest: &'a [u8],
}

/// Up to the end of the image. Pixels need no state of their own: within them 0xff is followed by 0 or is a restart marker,
/// and both are skipped. A thumbnail inside the EXIF is skipped with its segment.
pub fn segments(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    let mut rest = file;
    std::iter::from_fn(move || {
        loop {
            let found = rest.get(memchr(0xff, rest)?..)?;
            let place = found.iter().position(|byte| *byte != 0xff)?;
            let (&marker, after) = found.get(place..)?.split_first()?;
            rest = after;
            match marker {
                // A stuffed byte, a restart, the start of the image: nothing comes with them.
                0x00 | 0x01 | 0xd0..=0xd8 => {}
                marker::END_OF_IMAGE => {
                    rest = &[];
                    return Some(Segment { marker, content: rest, rest });
                }
                _ => {
                    let length = usize::from(u16::from_be_bytes(*after.first_chunk()?)).max(2);
                    let (segment, following) = after.split_at_checked(length)?;
                    rest = following;
                    return Some(Segment { marker, content: &segment[2..], rest });
                }
            }
        }
    })
}

/// Those before the first scan.
pub fn before_pixels(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    segments(file).take_while(|segment| segment.marker != marker::START_OF_SCAN)
}

/// How often the file goes over its picture. Refuses one that does not get to its end.
pub fn scans(file: &[u8]) -> Result<u32, Error> {
    let mut scans = 0;
    for Segment { marker, .. } in segments(file) {
        match marker {
            marker::START_OF_SCAN => scans += 1,
            marker::END_OF_IMAGE => return Ok(scans),
            _ => {}
        }
    }
    Err(Error::Damaged("the JPEG ends before its end-of-image marker: the file is cut short".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"\xff\xd8\xff\xe1\0\x0cExif\0\0\xff\xd9\xff\xda\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\
        \xff\xda\0\x04ab12\xff\0\xff\xd0\xff\xff\xd9";

    #[test]
    fn thumbnails_and_stuffed_bytes_are_no_end() {
        assert_eq!(scans(WHOLE), Ok(1));
        for end in 0..WHOLE.len() {
            assert!(scans(&WHOLE[..end]).is_err(), "cut at {end}");
        }
        assert_eq!(scans(&[WHOLE, b"a motion photo's video \xff\xda\0\x02"].concat()), Ok(1));
    }

    #[test]
    fn what_is_before_the_pixels() {
        let markers: Vec<u8> = before_pixels(WHOLE).map(|segment| segment.marker).collect();
        assert_eq!(markers, [marker::APP1, 0xc0]);
    }
}
