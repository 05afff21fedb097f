//! What a file says about itself before its pixels. Reads in place and allocates nothing.

use sparks_domain::{RejectCode, Rejection};

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
}

pub(crate) fn read(format: Format, file: &[u8]) -> Result<Header<'_>, Rejection> {
    let (width, height) = match format {
        Format::Jpeg => jpeg::size(file),
        Format::Png => png::size(file),
        Format::WebP => webp::size(file)?,
        Format::Gif => gif::size(file),
    }
    .ok_or_else(|| reject(RejectCode::Damaged, format!("the {} ends before it tells its size", format.name())))?;
    let metadata = Metadata::of(format, file);
    Ok(Header { width, height, exif: metadata.exif, metadata_bytes: metadata.bytes })
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
