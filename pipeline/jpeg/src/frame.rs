//! The frame header (T.81 B.2.2): dimensions and components, and the kinds of JPEG that are not supported.

use crate::{Error, coefficients::Coefficients, header_segments, idct::SIDE};

/// A parsed frame header.
#[derive(Debug, Clone)]
pub struct FrameHeader {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Whether the image is stored in several scans, each refining the ones before.
    pub progressive: bool,
    components: [Component; FrameHeader::MAX_COMPONENTS],
    count: usize,
}

/// A component (colour plane) with its sampling factors H and V: the blocks per MCU, horizontally and vertically.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Component {
    pub(crate) id: u8,
    pub(crate) h: usize,
    pub(crate) v: usize,
    /// Index of its quantization table.
    pub(crate) quantization: usize,
}

/// Reads the frame header and checks that this kind of JPEG is supported.
pub fn read_frame_header(file: &[u8]) -> Result<FrameHeader, Error> {
    let mut frames = header_segments(file).filter(|segment| is_frame(segment.marker));
    let first = frames.next().and_then(|segment| FrameHeader::read(segment.marker, segment.content));
    let truncated = "the JPEG ends before its dimensions: the file is truncated";
    let first = first.unwrap_or_else(|| Err(Error::Damaged(truncated.into())))?;
    if frames.next().is_some() {
        return Err(Error::Damaged("the JPEG is damaged: it has two frame headers".into()));
    }
    Ok(first)
}

impl FrameHeader {
    const MAX_COMPONENTS: usize = 4;

    /// Parses the content of a frame segment. The outer `None` is a header that ends too early.
    fn read(marker: u8, content: &[u8]) -> Option<Result<Self, Error>> {
        let (&[precision, a, b, c, d, count], specs) = content.split_first_chunk()?;
        let (height, width) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if let Err(error) = check_supported(marker, precision, height, count) {
            return Some(Err(error));
        }
        let count = usize::from(count);
        let mut components = [Component::default(); Self::MAX_COMPONENTS];
        for (component, spec) in components.iter_mut().zip(specs.get(..count * 3)?.chunks_exact(3)) {
            let [h, v, quantization] = [spec[1] >> 4, spec[1] & 15, spec[2]].map(usize::from);
            *component = Component { id: spec[0], h, v, quantization };
            if let Err(error) = component.check() {
                return Some(Err(error));
            }
        }
        let progressive = marker == PROGRESSIVE;
        Some(Ok(Self { width: width.into(), height: height.into(), progressive, components, count }))
    }

    pub(crate) fn components(&self) -> &[Component] {
        &self.components[..self.count]
    }

    /// Returns the number of components: 1, 3 or 4.
    pub fn component_count(&self) -> usize {
        self.count
    }

    fn max_h(&self) -> usize {
        self.components().iter().map(|component| component.h).max().unwrap_or(1)
    }

    fn max_v(&self) -> usize {
        self.components().iter().map(|component| component.v).max().unwrap_or(1)
    }

    /// Returns the number of MCUs (minimum coded units), horizontally and vertically.
    pub(crate) fn mcus(&self) -> (usize, usize) {
        let mcus = |pixels: u32, max: usize| (pixels as usize).div_ceil(SIDE * max);
        (mcus(self.width, self.max_h()), mcus(self.height, self.max_v()))
    }

    /// Returns the samples per pixel of the component, horizontally and vertically.
    pub(crate) fn sampling_ratio(&self, component: &Component) -> [f64; 2] {
        let ratio = |own: usize, max: usize| own as f64 / max as f64;
        [ratio(component.h, self.max_h()), ratio(component.v, self.max_v())]
    }

    /// Returns the width and height of the component in samples.
    pub(crate) fn component_size(&self, component: &Component) -> [usize; 2] {
        let samples = |pixels: u32, own: usize, max: usize| (pixels as usize * own).div_ceil(max);
        [samples(self.width, component.h, self.max_h()), samples(self.height, component.v, self.max_v())]
    }

    /// Returns the number of blocks of the component in a non-interleaved scan, horizontally and vertically.
    pub(crate) fn block_count(&self, component: &Component) -> (usize, usize) {
        let [width, height] = self.component_size(component);
        (width.div_ceil(SIDE), height.div_ceil(SIDE))
    }

    /// Returns the memory that [`crate::decode`] needs at this scale, in bytes.
    pub fn decoder_memory(&self, scale_num: u32) -> u64 {
        let (columns, rows) = self.mcus();
        let blocks_per_mcu: usize = self.components().iter().map(|component| component.h * component.v).sum();
        let blocks = (columns * rows * blocks_per_mcu) as u64;
        let samples = u64::from(scale_num.clamp(1, 8).pow(2));
        blocks * samples + if self.progressive { blocks * Coefficients::block_bytes(samples) } else { 0 }
    }
}

impl Component {
    fn check(&self) -> Result<(), Error> {
        if (1..=4).contains(&self.h) && (1..=4).contains(&self.v) {
            return Ok(());
        }
        let factors = format!("sampling factors {} x {}", self.h, self.v);
        Err(Error::Damaged(format!("the JPEG is damaged: it has a component with {factors}")))
    }
}

const PROGRESSIVE: u8 = 0xc2;
/// DHP, the start of a hierarchical image: several frames, each a difference to the one before.
const HIERARCHICAL: u8 = 0xde;
/// The frame marker of JPEG-LS, another format with the same first bytes.
const JPEG_LS: u8 = 0xf7;

/// Returns whether the marker starts a frame; the same range contains tables and an extension.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf | HIERARCHICAL | JPEG_LS) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn check_supported(marker: u8, precision: u8, height: u16, components: u8) -> Result<(), Error> {
    let kind = match marker {
        0xc3 => "lossless JPEG",
        0xc5..=0xc7 | 0xcd..=0xcf | HIERARCHICAL => "hierarchical JPEG",
        0xc9 | 0xca => "arithmetic-coded JPEG",
        0xcb => "lossless arithmetic-coded JPEG",
        JPEG_LS => "JPEG-LS",
        _ if precision != 8 => &format!("JPEG with {precision} bits per sample"),
        _ if !matches!(components, 1 | 3 | 4) => &format!("JPEG with {components} components"),
        _ if height == 0 => "JPEG with its height after its pixels",
        _ => return Ok(()),
    };
    Err(Error::Unsupported(format!("{kind} is not supported: save it again as an ordinary JPEG")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(marker: u8, content: &[u8]) -> FrameHeader {
        FrameHeader::read(marker, content).expect("long enough").expect("a supported kind")
    }

    const SUBSAMPLED: &[u8] = b"\x08\0\x11\0\x21\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";

    #[test]
    fn blocks_are_counted_in_mcus_and_per_component() {
        let frame = readable(0xc2, SUBSAMPLED);
        assert_eq!((frame.width, frame.height, frame.progressive), (33, 17, true));
        assert_eq!(frame.mcus(), (3, 2));
        assert_eq!(frame.block_count(&frame.components()[0]), (5, 3));
        assert_eq!(frame.block_count(&frame.components()[1]), (3, 2));
        assert_eq!(frame.component_size(&frame.components()[1]), [17, 9]);
        assert_eq!(frame.sampling_ratio(&frame.components()[1]), [0.5, 0.5]);
        assert_eq!(frame.decoder_memory(8), 3 * 2 * 6 * (64 + 128 + 8));
        assert_eq!(frame.decoder_memory(3), 3 * 2 * 6 * (9 + 18 + 8));
    }

    #[test]
    fn unsupported_kinds_are_named() {
        let error =
            |marker, content: &[u8]| FrameHeader::read(marker, content).expect("long enough").expect_err("rejected");
        let cases: [(u8, &[u8], &str); 10] = [
            (0xc3, SUBSAMPLED, "lossless JPEG"),
            (0xc5, SUBSAMPLED, "hierarchical JPEG"),
            (0xde, SUBSAMPLED, "hierarchical JPEG"),
            (0xc9, SUBSAMPLED, "arithmetic-coded JPEG"),
            (0xca, SUBSAMPLED, "arithmetic-coded JPEG"),
            (0xcb, SUBSAMPLED, "lossless arithmetic-coded JPEG"),
            (0xf7, SUBSAMPLED, "JPEG-LS"),
            (0xc1, b"\x0c\0\x11\0\x21\x01\x01\x11\0", "JPEG with 12 bits per sample"),
            (0xc0, b"\x08\0\x11\0\x21\x02\x01\x11\0\x02\x11\0", "JPEG with 2 components"),
            (0xc0, b"\x08\0\0\0\x21\x01\x01\x11\0", "JPEG with its height after its pixels"),
        ];
        for (marker, content, kind) in cases {
            let expected = format!("{kind} is not supported: save it again as an ordinary JPEG");
            assert_eq!(error(marker, content), Error::Unsupported(expected));
        }
        for sampling in [0x00, 0x01, 0x10, 0x15, 0x51, 0xff] {
            let content = [b"\x08\0\x11\0\x21\x01\x01", &[sampling, 0][..]].concat();
            assert!(matches!(error(0xc0, &content), Error::Damaged(_)), "{sampling:#x}");
        }
    }

    #[test]
    fn two_frame_headers_are_rejected() {
        let one = [b"\xff\xc0\0\x11", SUBSAMPLED].concat();
        let file = |frames: usize| [b"\xff\xd8", &one.repeat(frames)[..], b"\xff\xda\0\x02\xff\xd9"].concat();
        assert_eq!(read_frame_header(&file(1)).expect("a frame").width, 33);
        let message = "the JPEG is damaged: it has two frame headers";
        assert_eq!(read_frame_header(&file(2)).expect_err("two"), Error::Damaged(message.into()));
        assert!(read_frame_header(&file(0)).is_err());
    }

    #[test]
    fn a_truncated_header_is_none() {
        for end in 0..SUBSAMPLED.len() {
            assert!(FrameHeader::read(0xc0, &SUBSAMPLED[..end]).is_none(), "truncated at {end}");
        }
    }
}
