//! WebP: RIFF chunks of name, length and content, padded to even lengths.

use sparks_domain::{RejectCode, Rejection};

use super::Metadata;
use crate::reject;

const SIGNATURE: usize = 12;
/// What an animation's frame says about itself before its own chunks.
const FRAME: usize = 16;

/// The first chunk's size. A decoder allocates for the frame inside before it compares, so a larger one is refused here.
pub(super) fn size(file: &[u8]) -> Result<Option<(u32, u32)>, Rejection> {
    let content = file.get(SIGNATURE..).unwrap_or_default();
    let Some((width, height)) = chunks(content).next().and_then(size_in) else { return Ok(None) };
    let frames = chunks(content).chain(chunks(content).filter(|(name, _)| name == b"ANMF").flat_map(within));
    for (frame_width, frame_height) in frames.filter_map(size_in) {
        if frame_width > width || frame_height > height {
            let message = format!(
                "the WebP has a frame of {frame_width} x {frame_height} pixels on a canvas of {width} x {height}"
            );
            return Err(reject(RejectCode::Damaged, message));
        }
    }
    Ok(Some((width, height)))
}

pub(super) fn metadata(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    for (name, content) in chunks(file.get(SIGNATURE..).unwrap_or_default()) {
        match &name {
            b"EXIF" => metadata.take_exif(content),
            b"ICCP" => metadata.count(content),
            _ => {}
        }
    }
    metadata
}

fn size_in((name, content): ([u8; 4], &[u8])) -> Option<(u32, u32)> {
    match (&name, content) {
        (b"VP8X", [_, _, _, _, a, b, c, d, e, f, ..]) => {
            Some((u32::from_le_bytes([*a, *b, *c, 0]) + 1, u32::from_le_bytes([*d, *e, *f, 0]) + 1))
        }
        (b"ANMF", [_, _, _, _, _, _, a, b, c, d, e, f, ..]) => {
            Some((u32::from_le_bytes([*a, *b, *c, 0]) + 1, u32::from_le_bytes([*d, *e, *f, 0]) + 1))
        }
        // The two upper bits are a hint for scaling.
        (b"VP8 ", [_, _, _, 0x9d, 0x01, 0x2a, a, b, c, d, ..]) => {
            Some(((u16::from_le_bytes([*a, *b]) & 0x3fff).into(), (u16::from_le_bytes([*c, *d]) & 0x3fff).into()))
        }
        (b"VP8L", [0x2f, a, b, c, d, ..]) => {
            let bits = u32::from_le_bytes([*a, *b, *c, *d]);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

fn within((_, frame): ([u8; 4], &[u8])) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    chunks(frame.get(FRAME..).unwrap_or_default())
}

/// The last chunk may be cut short: its beginning still tells its size, and the decoder will complain.
fn chunks(content: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (content, after) = after.split_at(length.min(after.len()));
        rest = after.get(length % 2..).unwrap_or_default();
        Some((*name, content))
    })
}
