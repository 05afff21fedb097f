//! What a file says about itself before its pixels. Reads in place and allocates nothing.

use sparks_domain::{RejectCode, Rejection};

use self::{gif::Gif, png::Png, webp::WebP};
use crate::{format::Format, reject, variant::Plan};

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
    file_bytes: u64,
    picture: Picture<'a>,
}

#[derive(Debug)]
enum Picture<'a> {
    Jpeg(sparks_jpeg::Frame),
    Png(Png),
    WebP(WebP<'a>),
    Gif(Gif),
}

pub(crate) fn read(format: Format, file: &[u8]) -> Result<Header<'_>, Rejection> {
    let cut_short = || {
        let message = format!("the {} ends before it tells its size: the file is cut short", format.name());
        reject(RejectCode::Damaged, message)
    };
    let (width, height, frames, picture) = match format {
        Format::Jpeg => {
            let frame = sparks_jpeg::frame(file).map_err(jpeg::rejection)?;
            (frame.width, frame.height, 1, Picture::Jpeg(frame))
        }
        Format::Png => {
            let png = Png::read(file).ok_or_else(cut_short)??;
            (png.width, png.height, png.frames, Picture::Png(png))
        }
        Format::WebP => {
            let webp = WebP::read(file).ok_or_else(cut_short)??;
            (webp.width, webp.height, webp.frames, Picture::WebP(webp))
        }
        Format::Gif => {
            let gif = Gif::read(file).ok_or_else(cut_short)??;
            (gif.width, gif.height, gif.frames, Picture::Gif(gif))
        }
    };
    let Metadata { exif, bytes: metadata_bytes } = Metadata::of(format, file);
    Ok(Header { width, height, exif, metadata_bytes, frames, file_bytes: file.len() as u64, picture })
}

impl Header<'_> {
    /// The most that this picture needs at any moment from its file to these prints, where so many eighths of its size are
    /// enough. The file counts twice, as the worker keeps it while another process decodes it. Decoding is followed by
    /// shrinking, which needs the pixels, those of four channels once more, and the prints; and that by encoding, which does
    /// not need the pixels any more.
    ///
    /// Only for sizes within the limits: the answer may take as long as they are large.
    pub(crate) fn memory(&self, eighths: u32, prints: [&Plan; 2]) -> u64 {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let (decoding, shrinking, eighths) = match &self.picture {
            Picture::Jpeg(frame) => (frame.memory(eighths), frame.memory(eighths), eighths),
            Picture::Png(png) => (png.memory(), pixels * if png.has_alpha() { 8 } else { 3 }, 8),
            Picture::WebP(webp) => (webp.memory(), pixels * if webp.has_alpha { 8 } else { 3 }, 8),
            Picture::Gif(gif) => (gif.memory(), pixels * 8, 8),
        };
        let most = |each: fn(&Plan) -> u64| prints.iter().map(|plan| each(plan)).max().unwrap_or_default();
        let printed: u64 = prints.iter().map(|plan| plan.printed()).sum();
        let printing = shrinking + printed + most(Plan::strip) * u64::from(eighths) / 8;
        let encoding = printed + most(Plan::encoding);
        2 * self.file_bytes + decoding.max(printing).max(encoding)
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
