//! What a file says about itself before its pixels. Reads in place and allocates nothing.

use sparks_domain::{RejectCode, Rejection};

use self::{gif::Gif, png::Png, webp::WebP};
use crate::{format::Format, reject};

mod gif;
pub(crate) mod jpeg;
mod png;
mod webp;

/// A file's own words. Sizes are those stored, before turning upright.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The TIFF structure in it.
    pub(crate) exif: Option<&'a [u8]>,
    /// EXIF and ICC, as stored.
    pub(crate) metadata_bytes: u64,
    /// One, but for animations.
    pub(crate) frames: u32,
    /// The most that this picture needs at any moment from its file to its variants, the file included.
    pub(crate) memory: u64,
}

pub(crate) fn read(format: Format, file: &[u8]) -> Result<Header<'_>, Rejection> {
    let cut_short = || {
        let message = format!("the {} ends before it tells its size: the file is cut short", format.name());
        reject(RejectCode::Damaged, message)
    };
    let said = match format {
        Format::Jpeg => {
            let frame = jpeg::frame(file)?;
            let decoding = jpeg::memory(file, &frame);
            Said { width: frame.width, height: frame.height, frames: 1, decoding, alpha: frame.is_cmyk() }
        }
        Format::Png => {
            let png = Png::read(file).ok_or_else(cut_short)??;
            let decoding = png.memory();
            Said { width: png.width, height: png.height, frames: png.frames, decoding, alpha: png.has_alpha() }
        }
        Format::WebP => {
            let webp = WebP::read(file).ok_or_else(cut_short)??;
            let decoding = webp.memory();
            Said { width: webp.width, height: webp.height, frames: webp.frames, decoding, alpha: webp.has_alpha }
        }
        Format::Gif => {
            let gif = Gif::read(file).ok_or_else(cut_short)??;
            Said { width: gif.width, height: gif.height, frames: gif.frames, decoding: gif.memory(), alpha: true }
        }
    };
    let metadata = Metadata::of(format, file);
    Ok(Header {
        width: said.width,
        height: said.height,
        exif: metadata.exif,
        metadata_bytes: metadata.bytes,
        frames: said.frames,
        memory: said.memory(file.len() as u64),
    })
}

/// What the formats have in common.
struct Said {
    width: u32,
    height: u32,
    frames: u32,
    /// What decoding takes.
    decoding: u64,
    /// Whether there may be a fourth channel.
    alpha: bool,
}

impl Said {
    /// Besides the pixels: both variants, and the encoder at work on one.
    const VARIANTS: u64 = 48 << 20;

    /// Decoding is followed by shrinking, which needs the pixels, with a fourth channel once more, and a strip as high as
    /// the picture.
    fn memory(&self, file: u64) -> u64 {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let shrinking = pixels.saturating_mul(if self.alpha { 8 } else { 3 });
        self.decoding.max(shrinking).saturating_add(file + Self::VARIANTS)
    }
}

pub(crate) fn exif(format: Format, file: &[u8]) -> Option<&[u8]> {
    Metadata::of(format, file).exif
}

#[derive(Default)]
struct Metadata<'a> {
    exif: Option<&'a [u8]>,
    bytes: u64,
}

impl<'a> Metadata<'a> {
    fn of(format: Format, file: &'a [u8]) -> Self {
        match format {
            Format::Jpeg => jpeg::metadata(file),
            Format::Png => png::metadata(file),
            Format::WebP => webp::metadata(file),
            // Its ICC extension is unknown to cameras and of no use to us.
            Format::Gif => Self::default(),
        }
    }

    fn count(&mut self, payload: &[u8]) {
        self.bytes += payload.len() as u64;
    }

    /// The first EXIF counts. Some writers put JPEG's prefix into PNG and WebP too.
    fn take_exif(&mut self, payload: &'a [u8]) {
        self.count(payload);
        self.exif.get_or_insert(payload.strip_prefix(jpeg::EXIF).unwrap_or(payload));
    }
}
