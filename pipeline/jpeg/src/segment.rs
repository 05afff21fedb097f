//! The marker segments of a JPEG file (T.81 B.1.1), with entropy-coded data in between.

use memchr::memchr;

use crate::Error;

/// The markers in use.
pub mod marker {
    /// Huffman tables.
    pub(crate) const HUFFMAN: u8 = 0xc4;
    /// Quantization tables.
    pub(crate) const QUANTIZATION: u8 = 0xdb;
    /// Restart interval (DRI), in MCUs.
    pub(crate) const RESTART_INTERVAL: u8 = 0xdd;
    /// End of image (EOI). Other data may follow: videos of motion photos, further images.
    pub const END_OF_IMAGE: u8 = 0xd9;
    /// Start of scan (SOS).
    pub const START_OF_SCAN: u8 = 0xda;
    /// JFIF.
    pub(crate) const APP0: u8 = 0xe0;
    /// EXIF.
    pub const APP1: u8 = 0xe1;
    /// ICC profiles.
    pub const APP2: u8 = 0xe2;
    /// Adobe's colour transform.
    pub(crate) const APP14: u8 = 0xee;
}

/// A marker segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// The second byte of the marker.
    pub marker: u8,
    /// The bytes covered by its length.
    pub content: &'a [u8],
    /// The rest of the file; after a scan header the entropy-coded data.
    pub rest: &'a [u8],
}

/// Iterates over the segments up to the end of the image. Entropy-coded data needs no state of its own: within it 0xff is
/// followed by 0 or is a restart marker, and both are skipped. A thumbnail inside the EXIF is skipped with its segment.
pub fn segments(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    let mut rest = file;
    std::iter::from_fn(move || {
        loop {
            let found = rest.get(memchr(0xff, rest)?..)?;
            let position = found.iter().position(|byte| *byte != 0xff)?;
            let (&marker, after) = found.get(position..)?.split_first()?;
            rest = after;
            match marker {
                // A stuffed byte, a restart or the start of image: no content.
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

/// Iterates over the segments before the first scan.
pub fn header_segments(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    segments(file).take_while(|segment| segment.marker != marker::START_OF_SCAN)
}

/// Counts the scans. Returns an error if the file has no end-of-image marker.
pub fn count_scans(file: &[u8]) -> Result<u32, Error> {
    let mut scans = 0;
    for Segment { marker, .. } in segments(file) {
        match marker {
            marker::START_OF_SCAN => scans += 1,
            marker::END_OF_IMAGE => return Ok(scans),
            _ => {}
        }
    }
    Err(Error::Damaged("the JPEG ends before its end-of-image marker: the file is truncated".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"\xff\xd8\xff\xe1\0\x0cExif\0\0\xff\xd9\xff\xda\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\
        \xff\xda\0\x04ab12\xff\0\xff\xd0\xff\xff\xd9";

    #[test]
    fn thumbnails_and_stuffed_bytes_do_not_end_the_image() {
        assert_eq!(count_scans(WHOLE), Ok(1));
        for end in 0..WHOLE.len() {
            assert!(count_scans(&WHOLE[..end]).is_err(), "truncated at {end}");
        }
        assert_eq!(count_scans(&[WHOLE, b"a motion photo's video \xff\xda\0\x02"].concat()), Ok(1));
    }

    #[test]
    fn header_segments_end_before_the_first_scan() {
        let markers: Vec<u8> = header_segments(WHOLE).map(|segment| segment.marker).collect();
        assert_eq!(markers, [marker::APP1, 0xc0]);
    }
}
