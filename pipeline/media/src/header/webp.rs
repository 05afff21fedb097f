//! WebP header: RIFF chunks of name, length and content, padded to even lengths (RFC 9649, section 2).

use sparks_domain::{RejectCode, Rejection};

use super::Metadata;
use crate::reject;

const SIGNATURE: usize = 12;
/// Bytes of an ANMF chunk before the frame's own chunks.
const FRAME_HEADER: usize = 16;

const ANIMATION_FLAG: u8 = 0x02;
const ALPHA_FLAG: u8 = 0x10;
const VP8L_ALPHA_FLAG: u8 = 0x10;
const ALPHA_COMPRESSED: u8 = 0x01;
/// Signature and size.
const VP8L_HEADER: usize = 5;

mod lossless;

/// The structure of a WebP file.
#[derive(Debug)]
pub(super) struct WebP<'a> {
    /// Size of the canvas.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) frames: u32,
    pub(super) has_alpha: bool,
    is_animated: bool,
    /// Size of the first frame, or of the canvas.
    frame: (u32, u32),
    lossless: Option<&'a [u8]>,
    /// The ALPH chunk beside a lossy image.
    alpha: Option<&'a [u8]>,
}

type Chunk<'a> = ([u8; 4], &'a [u8]);

impl<'a> WebP<'a> {
    /// Reads the structure. The first chunk declares the size. A frame of another size is rejected here, because decoders allocate
    /// for it before they compare, or never compare. The outer `None` is a file that ends before its size.
    pub(super) fn read(file: &'a [u8]) -> Option<Result<Self, Rejection>> {
        let content = file.get(SIGNATURE..)?;
        let canvas = chunks(content).next()?;
        let (width, height) = size_in(canvas)?;
        let first_frame = chunks(content).find(|(name, _)| name == b"ANMF");
        let is_animated = &canvas.0 == b"VP8X" && canvas.1.first().is_some_and(|flags| flags & ANIMATION_FLAG != 0);
        // The decoder searches the first frame for missing chunks even if the file is not animated.
        let outside = || chunks(content).filter(|_| !is_animated);
        let inside = || first_frame.into_iter().flat_map(frame_chunks);
        let find = |wanted| outside().chain(inside()).find(|(name, _)| name == wanted).map(|(_, content)| content);
        let webp = Self {
            width,
            height,
            frames: chunks(content).filter(|(name, _)| name == b"ANMF").count() as u32,
            has_alpha: match &canvas.0 {
                b"VP8X" => canvas.1.first().is_some_and(|flags| flags & ALPHA_FLAG != 0),
                b"VP8L" => canvas.1.get(4).is_some_and(|bits| bits & VP8L_ALPHA_FLAG != 0),
                _ => false,
            },
            is_animated,
            frame: first_frame.filter(|_| is_animated).and_then(size_in).unwrap_or((width, height)),
            lossless: find(b"VP8L"),
            alpha: find(b"ALPH"),
        };
        Some(webp.check(chunks(content).filter(|(name, _)| name != b"VP8X" && name != b"ANMF"), first_frame))
    }

    fn check(self, stills: impl Iterator<Item = Chunk<'a>>, first_frame: Option<Chunk<'a>>) -> Result<Self, Rejection> {
        let canvas = (self.width, self.height);
        for still in stills.filter_map(size_in) {
            check_same_size(still, "canvas", canvas)?;
        }
        let Some(frame) = first_frame else { return Ok(self) };
        if let Some((width, height)) = size_in(frame) {
            let [left, top] = offset(frame);
            if left + width > self.width || top + height > self.height {
                let message = format!(
                    "the WebP is damaged: it has a frame of {width} x {height} pixels on a canvas of {} x {}",
                    self.width, self.height
                );
                return Err(reject(RejectCode::Damaged, message));
            }
            for inside in frame_chunks(frame).filter_map(size_in) {
                check_same_size(inside, "frame", (width, height))?;
            }
        }
        // The decoder takes the chunk after ALPH for the image without checking its name.
        let mut inside = frame_chunks(frame).map(|(name, _)| name).skip_while(|name| name != b"ALPH");
        match (inside.next(), inside.next()) {
            (None, _) | (Some(_), Some([b'V', b'P', b'8', b' '])) => Ok(self),
            _ => Err(reject(RejectCode::Damaged, "the WebP is damaged: its first frame has alpha but no image")),
        }
    }

    /// Returns the memory of decoding: the pixels, their intermediate buffers, and the prefix code tables.
    pub(super) fn memory(&self) -> u64 {
        const PLANES_OF_LOSSY: u64 = 2;
        const RGBA: u64 = 4;
        let compressed_alpha =
            self.alpha.and_then(|alpha| alpha.split_first()).filter(|(flags, _)| *flags & ALPHA_COMPRESSED != 0);
        let output = if self.has_alpha { RGBA } else { 3 };
        let alpha = self.alpha.map_or(0, |_| 1) + compressed_alpha.map_or(0, |_| RGBA);
        let intermediate = match (self.lossless, self.has_alpha) {
            // The transforms are read into up to a quarter of the image's size.
            (Some(_), true) => 1,
            (Some(_), false) => RGBA + 1,
            (None, _) => PLANES_OF_LOSSY + alpha,
        };
        let animation = if self.is_animated { RGBA + RGBA } else { 0 };
        let streams =
            [self.lossless.and_then(|image| image.get(VP8L_HEADER..)), compressed_alpha.map(|(_, alpha)| alpha)];
        let (width, height) = self.frame;
        let codes: u64 =
            streams.iter().flatten().map(|stream| lossless::prefix_code_memory(stream, width, height)).sum();
        u64::from(self.width) * u64::from(self.height) * (output + intermediate + animation) + codes
    }
}

fn check_same_size(found: (u32, u32), of: &str, expected: (u32, u32)) -> Result<(), Rejection> {
    if found == expected {
        return Ok(());
    }
    let ((a, b), (c, d)) = (found, expected);
    let message = format!("the WebP is damaged: it has an image of {a} x {b} pixels on a {of} of {c} x {d}");
    Err(reject(RejectCode::Damaged, message))
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

fn size_in((name, content): Chunk<'_>) -> Option<(u32, u32)> {
    match (&name, content) {
        (b"VP8X", [_, _, _, _, a, b, c, d, e, f, ..]) => {
            Some((u32::from_le_bytes([*a, *b, *c, 0]) + 1, u32::from_le_bytes([*d, *e, *f, 0]) + 1))
        }
        (b"ANMF", [_, _, _, _, _, _, a, b, c, d, e, f, ..]) => {
            Some((u32::from_le_bytes([*a, *b, *c, 0]) + 1, u32::from_le_bytes([*d, *e, *f, 0]) + 1))
        }
        // The two upper bits are a scaling hint.
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

/// Returns the offset of a frame on its canvas; stored divided by two.
fn offset((_, frame): Chunk<'_>) -> [u32; 2] {
    match frame {
        [a, b, c, d, e, f, ..] => [[*a, *b, *c, 0], [*d, *e, *f, 0]].map(|half| u32::from_le_bytes(half) * 2),
        _ => [0, 0],
    }
}

fn frame_chunks((_, frame): Chunk<'_>) -> impl Iterator<Item = Chunk<'_>> {
    chunks(frame.get(FRAME_HEADER..).unwrap_or_default())
}

/// Iterates over chunks. The last one may be truncated: its beginning still holds the size, and the decoder reports it.
fn chunks(content: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
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
