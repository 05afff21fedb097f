//! JPEG: segments of marker and length, with pixels in between.

use memchr::memchr;
use sparks_domain::{RejectCode, Rejection};

use self::{entropy::Watch, frame::Frame};
use super::Metadata;
use crate::{Limits, reject};

mod entropy;
mod frame;
mod huffman;

/// What an APP1 segment begins with when it holds EXIF.
pub(super) const EXIF: &[u8] = b"Exif\0\0";
const ICC: &[u8] = b"ICC_PROFILE\0";

const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;

/// Whether the image gets to its end, in few enough scans, and is all there. Decoders paint the missing part grey instead
/// of complaining. What follows the end is somebody else's: videos of motion photos, further pictures.
pub(crate) fn check(file: &[u8], limits: &Limits) -> Result<(), Rejection> {
    limits.check_scans(scans(file)?)?;
    let frame = frame(file)?;
    let mut watch = Watch::new(&frame);
    segments(file).try_for_each(|segment| watch.see(&segment))
}

/// Every scan goes over the whole picture again, so a hundred short ones keep a core busy for half a minute.
fn scans(file: &[u8]) -> Result<u32, Rejection> {
    let mut scans = 0;
    for Segment { marker, .. } in segments(file) {
        match marker {
            START_OF_SCAN => scans += 1,
            END_OF_IMAGE => return Ok(scans),
            _ => {}
        }
    }
    let message = "the JPEG ends before its end-of-image marker: the file is cut short";
    Err(reject(RejectCode::Damaged, message))
}

/// What the file says about its picture, where that is of a kind that can be read.
pub(super) fn frame(file: &[u8]) -> Result<Frame, Rejection> {
    let mut frames = before_pixels(file).filter(|(marker, _)| frame::is_frame(*marker));
    let first = frames.next().and_then(|(marker, content)| Frame::read(marker, content));
    let first = first.unwrap_or_else(|| {
        Err(reject(RejectCode::Damaged, "the JPEG ends before it tells its size: the file is cut short"))
    })?;
    if frames.next().is_some() {
        return Err(reject(RejectCode::Damaged, "the JPEG is damaged: it tells its size twice"));
    }
    Ok(first)
}

/// What decoding takes: the pixels, and where not all components come in one scan also the coefficients of all of them.
pub(super) fn memory(file: &[u8], frame: &Frame) -> u64 {
    let pixels = u64::from(frame.width) * u64::from(frame.height) * frame.components().len() as u64;
    let first_scan = segments(file).find(|segment| segment.marker == START_OF_SCAN);
    let in_first_scan = first_scan.and_then(|segment| segment.content.first().copied()).unwrap_or_default();
    let one_pass = !frame.progressive && usize::from(in_first_scan) == frame.components().len();
    pixels + if one_pass { 0 } else { frame.padded_samples() * size_of::<i16>() as u64 }
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

fn before_pixels(file: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    segments(file)
        .take_while(|segment| segment.marker != START_OF_SCAN)
        .map(|segment| (segment.marker, segment.content))
}

/// A marker and what it comes with.
struct Segment<'a> {
    marker: u8,
    content: &'a [u8],
    /// What follows, for a scan its pixels.
    rest: &'a [u8],
}

/// Pixels need no state of their own: within them 0xff is followed by 0 or is a restart marker, and both are skipped.
/// A thumbnail inside the EXIF is skipped with its segment.
fn segments(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
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
                    return Some(Segment { marker: kind, content: rest, rest });
                }
                _ => {
                    let length = usize::from(u16::from_be_bytes(*after.first_chunk()?)).max(2);
                    let (segment, following) = after.split_at_checked(length)?;
                    rest = following;
                    return Some(Segment { marker: kind, content: &segment[2..], rest });
                }
            }
        }
    })
}

#[cfg(test)]
mod tests;
