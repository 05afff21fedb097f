//! Small image files for the tests.

use image::{
    DynamicImage, ImageFormat, Rgb, RgbImage,
    metadata::Orientation::{self, Rotate90, Rotate270},
};

/// Returns four colours in four quadrants: no two orientations look the same.
pub(crate) fn quadrants(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([200, 30, 30]),
        (false, true) => Rgb([30, 200, 30]),
        (true, false) => Rgb([30, 30, 200]),
        (false, false) => Rgb([200, 200, 30]),
    })
    .into()
}

pub(crate) fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    image.write_to(&mut file, format).expect("an encoded sample");
    file.into_inner()
}

/// Returns the image as a camera in this EXIF orientation stores it.
pub(crate) fn stored(image: &DynamicImage, orientation: u8) -> DynamicImage {
    let turned = match Orientation::from_exif(orientation).expect("1 to 8") {
        Rotate90 => Rotate270,
        Rotate270 => Rotate90,
        own_inverse => own_inverse,
    };
    let mut image = image.clone();
    image.apply_orientation(turned);
    image
}

/// Inserts an APP segment after the start of a JPEG.
pub(crate) fn jpeg_with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).expect("a segment").to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, content, &jpeg[2..]].concat()
}

pub(crate) fn jpeg_with_exif(jpeg: &[u8], tiff: &[u8]) -> Vec<u8> {
    jpeg_with_segment(jpeg, 0xe1, &[b"Exif\0\0", tiff].concat())
}

/// Inserts a chunk after the header of a PNG.
pub(crate) fn png_with(png: &[u8], name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&png[..33], &png_chunk(name, content), &png[33..]].concat()
}

pub(crate) fn png_chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let named = [name, content].concat();
    [&(content.len() as u32).to_be_bytes()[..], &named, &crc(&named).to_be_bytes()].concat()
}

/// Wraps a simple WebP as an extended one with EXIF at its end.
pub(crate) fn webp_with_exif(webp: &[u8], (width, height): (u32, u32), tiff: &[u8]) -> Vec<u8> {
    const HAS_EXIF: u8 = 8;
    let mut extended = vec![HAS_EXIF, 0, 0, 0];
    extended.extend(&(width - 1).to_le_bytes()[..3]);
    extended.extend(&(height - 1).to_le_bytes()[..3]);
    let content = [b"WEBP", &riff(b"VP8X", &extended)[..], &webp[12..], &riff(b"EXIF", tiff)].concat();
    riff(b"RIFF", &content)
}

pub(crate) fn riff(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let padding = vec![0; content.len() % 2];
    [&name[..], &(content.len() as u32).to_le_bytes(), content, &padding].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// EXIF metadata to write.
#[derive(Default, Clone)]
pub(crate) struct Exif {
    pub(crate) big_endian: bool,
    pub(crate) orientation: Option<u8>,
    pub(crate) date_time: Option<String>,
    pub(crate) original: Option<String>,
    pub(crate) offset: Option<String>,
}

impl Exif {
    pub(crate) fn taken(time: &str, offset: Option<&str>) -> Self {
        Self { original: Some(time.into()), offset: offset.map(Into::into), ..Self::default() }
    }

    pub(crate) fn orientation(self, orientation: u8) -> Self {
        Self { orientation: Some(orientation), ..self }
    }

    /// Serializes header, main directory (IFD0), EXIF directory and texts.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        const MAIN: u32 = 8;
        const SECOND: u32 = MAIN + 2 + 3 * 12 + 4;
        const TEXTS: u32 = SECOND + 2 + 2 * 12 + 4;
        let mut texts = Vec::new();
        let mut text = |tag: u16, text: &Option<String>| {
            let text = text.clone().unwrap_or_default() + "\0";
            let at = TEXTS + texts.len() as u32;
            texts.extend(text.bytes());
            let inline = u32::from_le_bytes([text.as_bytes()[0], 0, 0, 0]);
            (tag, 2, text.len() as u32, if text.len() <= 4 { inline } else { at })
        };
        let short = |value: u8| if self.big_endian { u32::from(value) << 16 } else { value.into() };
        let main = [
            (0x0112, 3, 1, short(self.orientation.unwrap_or(1))),
            text(0x0132, &self.date_time),
            (0x8769, 4, 1, SECOND),
        ];
        let second = [text(0x9003, &self.original), text(0x9011, &self.offset)];
        let header: &[u8] = if self.big_endian { b"MM\0*" } else { b"II*\0" };
        [header, &self.u32(MAIN), &self.directory(&main), &self.directory(&second), &texts].concat()
    }

    fn directory(&self, entries: &[(u16, u16, u32, u32)]) -> Vec<u8> {
        let mut bytes = self.u16(entries.len() as u16).to_vec();
        for (tag, kind, count, value) in entries {
            bytes.extend([self.u16(*tag), self.u16(*kind)].concat());
            bytes.extend([self.u32(*count), self.u32(*value)].concat());
        }
        bytes.extend(self.u32(0));
        bytes
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}
