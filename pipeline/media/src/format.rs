//! File formats, detected by magic bytes and never by the file name.

use memchr::memmem;
use sparks_domain::{RejectCode, Rejection};

use crate::reject;

/// The supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg,
    Png,
    WebP,
    Gif,
}

impl Format {
    pub(crate) fn detect(file: &[u8]) -> Option<Self> {
        match file {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    pub(crate) fn mime_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Gif => "gif",
        }
    }

    /// Returns the name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
        }
    }
}

/// Returns the rejection of a file in no supported format. The message names the format where it is known.
pub(crate) fn unsupported_format(file: &[u8]) -> Rejection {
    let message = match name_unsupported(file) {
        Some(name) => format!("{name} is not supported: convert it to JPEG, PNG, WebP or GIF"),
        None => "not an image: neither JPEG, PNG, WebP nor GIF".into(),
    };
    reject(RejectCode::UnsupportedFormat, message)
}

fn name_unsupported(file: &[u8]) -> Option<&'static str> {
    match file {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(name_iso_media(file)),
        [_, _, _, _, b'm' | b'w', b'o' | b'i', b'o' | b'd', b'v' | b'e', ..] => Some("QuickTime video"),
        [b'I', b'I', b'*', 0, _, _, _, _, b'C', b'R', ..] => Some("Canon raw (CR2)"),
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Some("TIFF (or a camera raw made of it)"),
        [b'I', b'I', b'R', b'O' | b'S', ..] => Some("Olympus raw (ORF)"),
        [b'I', b'I', b'U', 0, ..] => Some("Panasonic raw (RW2)"),
        [b'F', b'U', b'J', b'I', b'F', b'I', b'L', b'M', ..] => Some("Fujifilm raw (RAF)"),
        // Two letters alone would match every text that begins with them.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some("BMP"),
        [b'8', b'B', b'P', b'S', ..] => Some("Photoshop (PSD)"),
        [0, 0, 1, 0, ..] => Some("ICO"),
        [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => Some("JPEG XL"),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] => Some("JPEG 2000"),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some("Matroska or WebM video"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => Some("AVI video"),
        [b'%', b'P', b'D', b'F', ..] => Some("PDF"),
        [b'P', b'K', 3, 4, ..] => Some("ZIP"),
        _ => name_markup(file),
    }
}

/// Names a file of the ISO base media format (HEIC, AVIF, MP4) by the brands in its `ftyp` box.
fn name_iso_media(file: &[u8]) -> &'static str {
    let length = file.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
    let brands = &file[8..length.clamp(8, 256).min(file.len()).max(8)];
    let has = |names: &[&[u8; 4]]| brands.chunks_exact(4).any(|brand| names.iter().any(|name| *name == brand));
    if has(&[b"avif", b"avis"]) {
        "AVIF"
    } else if has(&[b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"]) {
        "HEIC"
    } else if has(&[b"crx "]) {
        "Canon raw (CR3)"
    } else if has(&[b"qt  "]) {
        "QuickTime video"
    } else {
        "MP4 video"
    }
}

fn name_markup(file: &[u8]) -> Option<&'static str> {
    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file).trim_ascii_start();
    let beginning = text[..text.len().min(1024)].to_ascii_lowercase();
    let has = |tag: &[u8]| memmem::find(&beginning, tag).is_some();
    match beginning.first() {
        Some(b'<') if has(b"<svg") => Some("SVG"),
        Some(b'<') if has(b"<html") => Some("HTML"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_formats_are_named() {
        let cases: [(&[u8], &str); 18] = [
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIC"),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "AVIF"),
            (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "QuickTime video"),
            (b"\0\0\0\x14ftypisom\0\0\0\0isom", "MP4 video"),
            (b"\0\0\0\x14ftypcrx \0\0\0\0crx ", "Canon raw (CR3)"),
            (b"\xff\xff\xff\xffftyp", "MP4 video"),
            (b"\0\0\0\0ftypheic", "MP4 video"),
            (b"II*\0\x10\0\0\0CR\x02\0", "Canon raw (CR2)"),
            (b"MM\0*\0\0\0\x08", "TIFF (or a camera raw made of it)"),
            (b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0", "BMP"),
            (b"%PDF-1.7", "PDF"),
            (b"\xef\xbb\xbf<?xml version='1.0'?>\n<SVG/>", "SVG"),
            (b"<!DOCTYPE html><html>", "HTML"),
            (b"\xff\x0a", "JPEG XL"),
            (b"RIFF\0\0\0\0AVI LIST", "AVI video"),
            (b"\0\0\0\x08wide\0\0\0\0mdat", "QuickTime video"),
            (b"IIU\0\x18", "Panasonic raw (RW2)"),
        ];
        for (file, name) in cases {
            let expected = format!("{name} is not supported: convert it to JPEG, PNG, WebP or GIF");
            assert_eq!(unsupported_format(file).message, expected);
        }
    }

    #[test]
    fn unknown_files_are_not_images() {
        let files: [&[u8]; 7] = [b"", b"x", b"BMW is a car", b"hello", b"<", b"\x89PNG\n", b"GIF88a"];
        for file in files {
            assert_eq!(Format::detect(file), None);
            assert_eq!(unsupported_format(file).message, "not an image: neither JPEG, PNG, WebP nor GIF");
        }
    }
}
