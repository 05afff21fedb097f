//! JPEG: segments of marker and length, with pixels in between.

use memchr::memchr;
use sparks_domain::{RejectCode, Rejection};

use super::Metadata;
use crate::reject;

/// What an APP1 segment begins with when it holds EXIF.
pub(super) const EXIF: &[u8] = b"Exif\0\0";
const ICC: &[u8] = b"ICC_PROFILE\0";

const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;
const APP14: u8 = 0xee;

/// Encoders write about ten. Every scan goes over the whole picture again, so a hundred short ones keep a core busy for
/// half a minute.
const MAX_SCANS: usize = 32;

/// Whether the image gets to its end, in few enough scans. Decoders paint the missing part grey instead of complaining.
/// What follows the end is somebody else's: videos of motion photos, further pictures.
pub(crate) fn check(file: &[u8]) -> Result<(), Rejection> {
    let mut scans = 0;
    for (marker, _) in segments(file) {
        match marker {
            START_OF_SCAN => scans += 1,
            END_OF_IMAGE if scans <= MAX_SCANS => return Ok(()),
            END_OF_IMAGE => {
                let message = format!("the JPEG has {scans} scans, more than the limit of {MAX_SCANS}: save it anew");
                return Err(reject(RejectCode::Damaged, message));
            }
            _ => {}
        }
    }
    let message = "the JPEG ends before its end-of-image marker: the file is cut short";
    Err(reject(RejectCode::Damaged, message))
}

pub(super) fn size(file: &[u8]) -> Option<(u32, u32)> {
    let (_, frame) = before_pixels(file).find(|(marker, _)| is_frame(*marker))?;
    let [_, a, b, c, d] = *frame.first_chunk()?;
    Some((u16::from_be_bytes([c, d]).into(), u16::from_be_bytes([a, b]).into()))
}

pub(super) fn metadata(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    for (marker, content) in before_pixels(file) {
        match marker {
            APP1 if content.starts_with(EXIF) => metadata.take_exif(content),
            APP2 if content.starts_with(ICC) => metadata.count(content),
            _ => {}
        }
    }
    metadata
}

/// Whether one of Adobe's programs wrote the file: it says what the components stand for.
pub(crate) fn has_adobe_marker(file: &[u8]) -> bool {
    before_pixels(file).any(|(marker, content)| marker == APP14 && content.starts_with(b"Adobe"))
}

/// Baseline, progressive and the rest; in the same range are tables and an extension.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn before_pixels(file: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    segments(file).take_while(|(marker, _)| *marker != START_OF_SCAN)
}

/// Pixels need no state of their own: within them 0xff is followed by 0 or is a restart marker, and both are skipped.
/// A thumbnail inside the EXIF is skipped with its segment.
fn segments(file: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = file;
    std::iter::from_fn(move || {
        loop {
            let found = rest.get(memchr(0xff, rest)?..)?;
            let marker = found.iter().position(|byte| *byte != 0xff)?;
            let (&kind, after) = found.get(marker..)?.split_first()?;
            rest = after;
            match kind {
                // A stuffed byte, a restart, the start of the image: nothing comes with them.
                0x00 | 0x01 | 0xd0..=0xd8 => {}
                END_OF_IMAGE => {
                    rest = &[];
                    return Some((kind, rest));
                }
                _ => {
                    let length = usize::from(u16::from_be_bytes(*after.first_chunk()?)).max(2);
                    let (segment, following) = after.split_at_checked(length)?;
                    rest = following;
                    return Some((kind, &segment[2..]));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"\xff\xd8\xff\xe1\0\x0cExif\0\0\xff\xd9\xff\xda\xff\xc0\0\x07\x08\0\x02\0\x03\
        \xff\xda\0\x04ab12\xff\0\xff\xd0\xff\xff\xd9";

    #[test]
    fn thumbnails_and_stuffed_bytes_are_no_end() {
        assert!(check(WHOLE).is_ok());
        for end in 0..WHOLE.len() {
            assert!(check(&WHOLE[..end]).is_err(), "cut at {end}");
        }
        assert!(check(&[WHOLE, b"a motion photo's video"].concat()).is_ok());
    }

    #[test]
    fn scans_are_counted() {
        let scans = |count| [b"\xff\xd8", &b"\xff\xda\0\x04ab12".repeat(count)[..], b"\xff\xd9"].concat();
        assert!(check(&scans(32)).is_ok());
        let message = check(&scans(33)).expect_err("too many").message;
        assert_eq!(message, "the JPEG has 33 scans, more than the limit of 32: save it anew");
    }

    #[test]
    fn size_and_exif_are_before_the_pixels() {
        assert_eq!(size(WHOLE), Some((3, 2)));
        assert_eq!(metadata(WHOLE).exif, Some(&b"\xff\xd9\xff\xda"[..]));
        assert_eq!(metadata(WHOLE).bytes, 10);
    }
}
