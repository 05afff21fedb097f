//! File headers: dimensions, metadata and memory needs, read in place without allocation.

use sparks_domain::{RejectCode, Rejection};

use self::{gif::Gif, png::Png, webp::WebP};
use crate::{format::Format, reject, variant::ResizePlan};

mod gif;
pub(crate) mod jpeg;
mod png;
mod webp;

/// The header of a file. Dimensions are as stored, before the EXIF orientation is applied.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The TIFF structure of the EXIF metadata.
    pub(crate) exif: Option<&'a [u8]>,
    /// Stored size of EXIF and ICC together.
    pub(crate) metadata_bytes: u64,
    /// More than one in animations only.
    pub(crate) frames: u32,
    file_bytes: u64,
    format_header: FormatHeader<'a>,
}

#[derive(Debug)]
enum FormatHeader<'a> {
    Jpeg(sparks_jpeg::FrameHeader),
    Png(Png),
    WebP(WebP<'a>),
    Gif(Gif),
}

pub(crate) fn read(format: Format, file: &[u8]) -> Result<Header<'_>, Rejection> {
    let truncated = || {
        let message = format!("the {} ends before its dimensions: the file is truncated", format.name());
        reject(RejectCode::Damaged, message)
    };
    let (width, height, frames, format_header) = match format {
        Format::Jpeg => {
            let frame = sparks_jpeg::read_frame_header(file).map_err(jpeg::rejection)?;
            (frame.width, frame.height, 1, FormatHeader::Jpeg(frame))
        }
        Format::Png => {
            let png = Png::read(file).ok_or_else(truncated)??;
            (png.width, png.height, png.frames, FormatHeader::Png(png))
        }
        Format::WebP => {
            let webp = WebP::read(file).ok_or_else(truncated)??;
            (webp.width, webp.height, webp.frames, FormatHeader::WebP(webp))
        }
        Format::Gif => {
            let gif = Gif::read(file).ok_or_else(truncated)??;
            (gif.width, gif.height, gif.frames, FormatHeader::Gif(gif))
        }
    };
    let Metadata { exif, bytes: metadata_bytes } = Metadata::read(format, file);
    Ok(Header { width, height, exif, metadata_bytes, frames, file_bytes: file.len() as u64, format_header })
}

impl Header<'_> {
    /// Returns an upper bound of the memory in use at any time, from the file to these variants, in bytes. `scale_num` is the
    /// numerator of the scaled IDCT.
    ///
    /// The file counts twice, because the worker keeps it while another process decodes it. The bound is the largest of three
    /// phases: decoding; resizing, which holds the pixels (a second copy where there are four channels) and the variants; and
    /// encoding, which no longer holds the pixels.
    ///
    /// Dimensions must have been checked first: the run time grows with them.
    pub(crate) fn peak_memory(&self, scale_num: u32, variants: [&ResizePlan; 2]) -> u64 {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let (decoding, source, scale_num) = match &self.format_header {
            FormatHeader::Jpeg(frame) => (frame.decoder_memory(scale_num), frame.decoder_memory(scale_num), scale_num),
            FormatHeader::Png(png) => (png.memory(), pixels * if png.has_alpha() { 8 } else { 3 }, 8),
            FormatHeader::WebP(webp) => (webp.memory(), pixels * if webp.has_alpha { 8 } else { 3 }, 8),
            FormatHeader::Gif(gif) => (gif.memory(), pixels * 8, 8),
        };
        let largest = |bytes: fn(&ResizePlan) -> u64| variants.iter().map(|plan| bytes(plan)).max().unwrap_or_default();
        let output: u64 = variants.iter().map(|plan| plan.output_bytes()).sum();
        let resizing = source + output + largest(ResizePlan::intermediate_bytes) * u64::from(scale_num) / 8;
        let encoding = output + largest(ResizePlan::encoder_bytes);
        2 * self.file_bytes + decoding.max(resizing).max(encoding)
    }
}

pub(crate) fn exif(format: Format, file: &[u8]) -> Option<&[u8]> {
    Metadata::read(format, file).exif
}

#[derive(Default)]
struct Metadata<'a> {
    exif: Option<&'a [u8]>,
    bytes: u64,
}

impl<'a> Metadata<'a> {
    fn read(format: Format, file: &'a [u8]) -> Self {
        match format {
            Format::Jpeg => jpeg::metadata(file),
            Format::Png => png::metadata(file),
            Format::WebP => webp::metadata(file),
            // Cameras do not write GIF's ICC extension, and it is not used.
            Format::Gif => Self::default(),
        }
    }

    fn count(&mut self, payload: &[u8]) {
        self.bytes += payload.len() as u64;
    }

    /// Takes the first EXIF block. Some writers put JPEG's `Exif\0\0` prefix into PNG and WebP too.
    fn take_exif(&mut self, payload: &'a [u8]) {
        self.count(payload);
        self.exif.get_or_insert(payload.strip_prefix(jpeg::EXIF).unwrap_or(payload));
    }
}
