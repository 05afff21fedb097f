//! A JPEG's frame header: what its picture is made of, and the kinds nobody here can read.

use sparks_domain::{RejectCode, Rejection};

use crate::reject;

/// What the frame header says.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// In several passes over the whole picture, each refining the one before.
    pub(super) progressive: bool,
    components: [Component; Frame::MOST_COMPONENTS],
    count: usize,
}

/// A colour's plane. Its sampling says how many blocks of it are in every unit of the picture.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Component {
    pub(super) id: u8,
    pub(super) across: usize,
    pub(super) down: usize,
}

impl Frame {
    const MOST_COMPONENTS: usize = 4;
    /// Pixels on a block's side.
    const BLOCK: usize = 8;

    /// Of the marker and the segment's content. The outer `None` is a header that ends too early.
    pub(super) fn read(marker: u8, content: &[u8]) -> Option<Result<Self, Rejection>> {
        let (&[precision, a, b, c, d, count], planes) = content.split_first_chunk()?;
        let (height, width) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if let Err(rejection) = can_be_read(marker, precision, height, count) {
            return Some(Err(rejection));
        }
        let count = usize::from(count);
        let mut components = [Component::default(); Self::MOST_COMPONENTS];
        for (component, plane) in components.iter_mut().zip(planes.get(..count * 3)?.chunks_exact(3)) {
            *component = Component { id: plane[0], across: (plane[1] >> 4).into(), down: (plane[1] & 15).into() };
            if let Err(rejection) = component.check() {
                return Some(Err(rejection));
            }
        }
        let progressive = marker == PROGRESSIVE;
        Some(Ok(Self { width: width.into(), height: height.into(), progressive, components, count }))
    }

    pub(super) fn components(&self) -> &[Component] {
        &self.components[..self.count]
    }

    /// Four inks, or black beside the colours of a screen.
    pub(crate) fn is_cmyk(&self) -> bool {
        self.count == 4
    }

    fn most_across(&self) -> usize {
        self.components().iter().map(|component| component.across).max().unwrap_or(1)
    }

    fn most_down(&self) -> usize {
        self.components().iter().map(|component| component.down).max().unwrap_or(1)
    }

    /// How many units of all components are in the picture, across and down.
    pub(super) fn units(&self) -> (usize, usize) {
        let units = |pixels: u32, most: usize| (pixels as usize).div_ceil(Self::BLOCK * most);
        (units(self.width, self.most_across()), units(self.height, self.most_down()))
    }

    /// How many blocks of the component are in the picture, where it is alone in a scan.
    pub(super) fn blocks(&self, component: &Component) -> (usize, usize) {
        let blocks = |pixels: u32, own: usize, most: usize| (pixels as usize * own).div_ceil(most * Self::BLOCK);
        (
            blocks(self.width, component.across, self.most_across()),
            blocks(self.height, component.down, self.most_down()),
        )
    }

    /// Samples of all components, to whole units: as many as a decoder keeps coefficients of.
    pub(super) fn padded_samples(&self) -> u64 {
        let (across, down) = self.units();
        let in_unit: usize = self.components().iter().map(|component| component.across * component.down).sum();
        (across * down * in_unit * Self::BLOCK * Self::BLOCK) as u64
    }
}

impl Component {
    fn check(&self) -> Result<(), Rejection> {
        if (1..=4).contains(&self.across) && (1..=4).contains(&self.down) {
            return Ok(());
        }
        let message = format!("the JPEG is damaged: it has a colour sampled {} x {} times", self.across, self.down);
        Err(reject(RejectCode::Damaged, message))
    }
}

const PROGRESSIVE: u8 = 0xc2;
/// Announces a picture of several frames, each a difference to the one before.
pub(super) const HIERARCHICAL: u8 = 0xde;
/// The frame of JPEG-LS, a format of its own behind the same first bytes.
pub(super) const JPEG_LS: u8 = 0xf7;

/// All frames there are; in the same range are tables and an extension.
pub(super) fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf | HIERARCHICAL | JPEG_LS) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn can_be_read(marker: u8, precision: u8, height: u16, components: u8) -> Result<(), Rejection> {
    let kind = match marker {
        0xc3 => "lossless JPEG",
        0xc5..=0xc7 | 0xcd..=0xcf | HIERARCHICAL => "hierarchical JPEG",
        0xc9 | 0xca => "arithmetic-coded JPEG",
        0xcb => "lossless arithmetic-coded JPEG",
        JPEG_LS => "JPEG-LS",
        _ if precision != 8 => &format!("JPEG with {precision} bits a colour"),
        _ if !matches!(components, 1 | 3 | 4) => &format!("JPEG of {components} colours"),
        _ if height == 0 => "JPEG that tells its height after its pixels",
        _ => return Ok(()),
    };
    let message = format!("{kind} is not supported: save it anew as an ordinary JPEG");
    Err(reject(RejectCode::UnsupportedFormat, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(marker: u8, content: &[u8]) -> Frame {
        Frame::read(marker, content).expect("long enough").expect("a kind that can be read")
    }

    const HALVED: &[u8] = b"\x08\0\x11\0\x21\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";

    #[test]
    fn blocks_are_counted_to_whole_units_and_alone() {
        let frame = frame(0xc2, HALVED);
        assert_eq!((frame.width, frame.height, frame.progressive), (33, 17, true));
        assert_eq!(frame.units(), (3, 2));
        assert_eq!(frame.blocks(&frame.components()[0]), (5, 3));
        assert_eq!(frame.blocks(&frame.components()[1]), (3, 2));
        assert_eq!(frame.padded_samples(), 3 * 2 * 6 * 64);
    }

    #[test]
    fn what_nobody_reads_is_refused_by_name() {
        let refusal = |marker, content: &[u8]| Frame::read(marker, content).expect("long enough").expect_err("refused");
        let cases: [(u8, &[u8], &str); 10] = [
            (0xc3, HALVED, "lossless JPEG"),
            (0xc5, HALVED, "hierarchical JPEG"),
            (0xde, HALVED, "hierarchical JPEG"),
            (0xc9, HALVED, "arithmetic-coded JPEG"),
            (0xca, HALVED, "arithmetic-coded JPEG"),
            (0xcb, HALVED, "lossless arithmetic-coded JPEG"),
            (0xf7, HALVED, "JPEG-LS"),
            (0xc1, b"\x0c\0\x11\0\x21\x01\x01\x11\0", "JPEG with 12 bits a colour"),
            (0xc0, b"\x08\0\x11\0\x21\x02\x01\x11\0\x02\x11\0", "JPEG of 2 colours"),
            (0xc0, b"\x08\0\0\0\x21\x01\x01\x11\0", "JPEG that tells its height after its pixels"),
        ];
        for (marker, content, kind) in cases {
            let expected = format!("{kind} is not supported: save it anew as an ordinary JPEG");
            let refusal = refusal(marker, content);
            assert_eq!((refusal.code, refusal.message), (RejectCode::UnsupportedFormat, expected));
        }
        for sampling in [0x00, 0x01, 0x10, 0x15, 0x51, 0xff] {
            let content = [b"\x08\0\x11\0\x21\x01\x01", &[sampling, 0][..]].concat();
            assert_eq!(refusal(0xc0, &content).code, RejectCode::Damaged, "{sampling:#x}");
        }
    }

    #[test]
    fn a_header_cut_short_is_none() {
        for end in 0..HALVED.len() {
            assert!(Frame::read(0xc0, &HALVED[..end]).is_none(), "cut at {end}");
        }
    }
}
