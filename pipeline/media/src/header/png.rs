//! PNG header: chunks of length, type, data and CRC.

use sparks_domain::{RejectCode, Rejection};

use super::Metadata;
use crate::reject;

const SIGNATURE: usize = 8;

/// The structure of a PNG file.
#[derive(Debug)]
pub(super) struct Png {
    pub(super) width: u32,
    pub(super) height: u32,
    /// More than one in an animated PNG.
    pub(super) frames: u32,
    channels: u64,
    is_16_bit: bool,
}

impl Png {
    const GREY: u8 = 0;
    const RGB: u8 = 2;
    const PALETTE: u8 = 3;
    const GREY_ALPHA: u8 = 4;
    const RGBA: u8 = 6;

    /// Reads IHDR, always the first chunk. The outer `None` is a file that ends within it.
    pub(super) fn read(file: &[u8]) -> Option<Result<Self, Rejection>> {
        let (_, header) = chunks(file).next().filter(|(name, _)| name == b"IHDR")?;
        let (width, rest) = header.split_first_chunk()?;
        let (height, rest) = rest.split_first_chunk()?;
        let [depth, colour_type, ..] = *rest else { return None };
        let has_transparency = chunks_before_pixels(file).any(|(name, _)| &name == b"tRNS");
        let channels = match colour_type {
            Self::GREY => 1 + u64::from(has_transparency),
            Self::RGB | Self::PALETTE => 3 + u64::from(has_transparency),
            Self::GREY_ALPHA => 2,
            Self::RGBA => 4,
            _ => {
                let message = format!("the PNG is damaged: its colour type is {colour_type}");
                return Some(Err(reject(RejectCode::Damaged, message)));
            }
        };
        // Counts the frame controls present, because acTL may claim any number.
        let frames = chunks(file).filter(|(name, _)| name == b"fcTL").count().max(1) as u32;
        let (width, height) = (u32::from_be_bytes(*width), u32::from_be_bytes(*height));
        Some(Ok(Self { width, height, frames, channels, is_16_bit: depth == 16 }))
    }

    /// Returns the memory of decoding: the pixels at their stored depth, and grey ones also as RGB.
    pub(super) fn memory(&self) -> u64 {
        let stored = self.channels * if self.is_16_bit { 2 } else { 1 };
        let as_rgb = if self.channels < 3 { self.channels + self.channels + 2 } else { 0 };
        u64::from(self.width) * u64::from(self.height) * stored.max(as_rgb)
    }

    pub(super) fn has_alpha(&self) -> bool {
        self.channels.is_multiple_of(2)
    }
}

/// Scans all chunks, because EXIF may follow the pixels.
pub(super) fn metadata(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    for (name, content) in chunks(file) {
        match &name {
            b"eXIf" => metadata.take_exif(content),
            b"iCCP" => metadata.count(content),
            _ => {}
        }
    }
    metadata
}

fn chunks_before_pixels(file: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    chunks(file).take_while(|(name, _)| name != b"IDAT")
}

fn chunks(file: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = file.get(SIGNATURE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_first_chunk()?;
        let (content, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = after.get(4..).unwrap_or_default();
        Some((*name, content))
    })
}
