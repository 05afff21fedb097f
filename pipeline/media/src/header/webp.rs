//! WebP: RIFF chunks of name, length and content, padded to even lengths.

use sparks_domain::{RejectCode, Rejection};

use super::Metadata;
use crate::reject;

const SIGNATURE: usize = 12;
/// What an animation's frame says about itself before its own chunks.
const FRAME: usize = 16;

const ANIMATED: u8 = 0x02;
const TRANSPARENT: u8 = 0x10;
const VP8L_TRANSPARENT: u8 = 0x10;
const PACKED: u8 = 0x01;
/// Signature and size.
const VP8L_HEADER: usize = 5;

mod lossless;

/// What a WebP says of itself.
#[derive(Debug)]
pub(super) struct WebP<'a> {
    /// Of the canvas.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) frames: u32,
    pub(super) has_alpha: bool,
    animated: bool,
    /// Of the first frame, or of the canvas.
    frame: (u32, u32),
    lossless: Option<&'a [u8]>,
    /// Transparency of its own beside a lossy picture.
    alpha: Option<&'a [u8]>,
}

type Chunk<'a> = ([u8; 4], &'a [u8]);

impl<'a> WebP<'a> {
    /// The first chunk tells the size. A decoder allocates for the frame inside before it compares, or never compares, so
    /// one of another size is refused here. The outer `None` is a file that ends before its size.
    pub(super) fn read(file: &'a [u8]) -> Option<Result<Self, Rejection>> {
        let content = file.get(SIGNATURE..)?;
        let canvas = chunks(content).next()?;
        let (width, height) = size_in(canvas)?;
        let first_frame = chunks(content).find(|(name, _)| name == b"ANMF");
        let animated = &canvas.0 == b"VP8X" && canvas.1.first().is_some_and(|flags| flags & ANIMATED != 0);
        // A decoder looks into the first frame even of what is not animated, for what it misses outside.
        let outside = || chunks(content).filter(|_| !animated);
        let inside = || first_frame.into_iter().flat_map(within);
        let find = |wanted| outside().chain(inside()).find(|(name, _)| name == wanted).map(|(_, content)| content);
        let webp = Self {
            width,
            height,
            frames: chunks(content).filter(|(name, _)| name == b"ANMF").count() as u32,
            has_alpha: match &canvas.0 {
                b"VP8X" => canvas.1.first().is_some_and(|flags| flags & TRANSPARENT != 0),
                b"VP8L" => canvas.1.get(4).is_some_and(|bits| bits & VP8L_TRANSPARENT != 0),
                _ => false,
            },
            animated,
            frame: first_frame.filter(|_| animated).and_then(size_in).unwrap_or((width, height)),
            lossless: find(b"VP8L"),
            alpha: find(b"ALPH"),
        };
        Some(webp.check(chunks(content).filter(|(name, _)| name != b"VP8X" && name != b"ANMF"), first_frame))
    }

    fn check(self, stills: impl Iterator<Item = Chunk<'a>>, first_frame: Option<Chunk<'a>>) -> Result<Self, Rejection> {
        let canvas = (self.width, self.height);
        for still in stills.filter_map(size_in) {
            same("picture", still, "canvas", canvas)?;
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
            for inside in within(frame).filter_map(size_in) {
                same("picture", inside, "frame", (width, height))?;
            }
        }
        // A decoder takes whatever follows the transparency for the picture, without a look at its name.
        let mut inside = within(frame).map(|(name, _)| name).skip_while(|name| name != b"ALPH");
        match (inside.next(), inside.next()) {
            (None, _) | (Some(_), Some([b'V', b'P', b'8', b' '])) => Ok(self),
            _ => {
                Err(reject(RejectCode::Damaged, "the WebP is damaged: its first frame has transparency but no picture"))
            }
        }
    }

    /// What decoding takes: the pixels, what they are made of, and the codes these are read with.
    pub(super) fn memory(&self) -> u64 {
        const PLANES_OF_LOSSY: u64 = 2;
        const RGBA: u64 = 4;
        let packed_alpha = self.alpha.and_then(|alpha| alpha.split_first()).filter(|(flags, _)| *flags & PACKED != 0);
        let shown = if self.has_alpha { RGBA } else { 3 };
        let alpha = self.alpha.map_or(0, |_| 1) + packed_alpha.map_or(0, |_| RGBA);
        let picture = match (self.lossless, self.has_alpha) {
            // Its transforms are read beside it, in up to a quarter of its size.
            (Some(_), true) => 1,
            (Some(_), false) => RGBA + 1,
            (None, _) => PLANES_OF_LOSSY + alpha,
        };
        let of_animation = if self.animated { RGBA + RGBA } else { 0 };
        let streams =
            [self.lossless.and_then(|picture| picture.get(VP8L_HEADER..)), packed_alpha.map(|(_, alpha)| alpha)];
        let (width, height) = self.frame;
        let codes: u64 = streams.iter().flatten().map(|stream| lossless::memory_of_codes(stream, width, height)).sum();
        u64::from(self.width) * u64::from(self.height) * (shown + picture + of_animation) + codes
    }
}

fn same(what: &str, found: (u32, u32), of: &str, expected: (u32, u32)) -> Result<(), Rejection> {
    if found == expected {
        return Ok(());
    }
    let ((a, b), (c, d)) = (found, expected);
    let message = format!("the WebP is damaged: it has a {what} of {a} x {b} pixels on a {of} of {c} x {d}");
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

/// Of a frame on its canvas; stored by halves.
fn offset((_, frame): Chunk<'_>) -> [u32; 2] {
    match frame {
        [a, b, c, d, e, f, ..] => [[*a, *b, *c, 0], [*d, *e, *f, 0]].map(|half| u32::from_le_bytes(half) * 2),
        _ => [0, 0],
    }
}

fn within((_, frame): Chunk<'_>) -> impl Iterator<Item = Chunk<'_>> {
    chunks(frame.get(FRAME..).unwrap_or_default())
}

/// The last chunk may be cut short: its beginning still tells its size, and the decoder will complain.
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
