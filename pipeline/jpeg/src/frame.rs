//! A JPEG's frame header: what its picture is made of, and the kinds nobody here can read.

use crate::{Error, before_pixels, coefficients::Coefficients, transform::SIDE};

/// What the frame header says.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// In several passes over the whole picture, each refining the one before.
    pub progressive: bool,
    components: [Component; Frame::MOST_COMPONENTS],
    count: usize,
}

/// A colour's plane. Its sampling says how many blocks of it are in every unit of the picture.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Component {
    pub(crate) id: u8,
    pub(crate) across: usize,
    pub(crate) down: usize,
    /// Which quantization table is its own.
    pub(crate) quantization: usize,
}

/// What the file says about its picture, where that is of a kind that can be read.
pub fn frame(file: &[u8]) -> Result<Frame, Error> {
    let mut frames = before_pixels(file).filter(|segment| is_frame(segment.marker));
    let first = frames.next().and_then(|segment| Frame::read(segment.marker, segment.content));
    let cut_short = "the JPEG ends before it tells its size: the file is cut short";
    let first = first.unwrap_or_else(|| Err(Error::Damaged(cut_short.into())))?;
    if frames.next().is_some() {
        return Err(Error::Damaged("the JPEG is damaged: it tells its size twice".into()));
    }
    Ok(first)
}

impl Frame {
    const MOST_COMPONENTS: usize = 4;

    /// Of the marker and the segment's content. The outer `None` is a header that ends too early.
    fn read(marker: u8, content: &[u8]) -> Option<Result<Self, Error>> {
        let (&[precision, a, b, c, d, count], planes) = content.split_first_chunk()?;
        let (height, width) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if let Err(error) = can_be_read(marker, precision, height, count) {
            return Some(Err(error));
        }
        let count = usize::from(count);
        let mut components = [Component::default(); Self::MOST_COMPONENTS];
        for (component, plane) in components.iter_mut().zip(planes.get(..count * 3)?.chunks_exact(3)) {
            let [across, down, quantization] = [plane[1] >> 4, plane[1] & 15, plane[2]].map(usize::from);
            *component = Component { id: plane[0], across, down, quantization };
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

    /// How many colours there are: 1, 3 or 4.
    pub fn colours(&self) -> usize {
        self.count
    }

    fn most_across(&self) -> usize {
        self.components().iter().map(|component| component.across).max().unwrap_or(1)
    }

    fn most_down(&self) -> usize {
        self.components().iter().map(|component| component.down).max().unwrap_or(1)
    }

    /// How many units of all components are in the picture, across and down.
    pub(crate) fn units(&self) -> (usize, usize) {
        let units = |pixels: u32, most: usize| (pixels as usize).div_ceil(SIDE * most);
        (units(self.width, self.most_across()), units(self.height, self.most_down()))
    }

    /// Samples of the component for each pixel, across and down.
    pub(crate) fn sampling(&self, component: &Component) -> [f64; 2] {
        let share = |own: usize, most: usize| own as f64 / most as f64;
        [share(component.across, self.most_across()), share(component.down, self.most_down())]
    }

    /// How many samples of the component are in the picture, across and down.
    pub(crate) fn samples(&self, component: &Component) -> [usize; 2] {
        let samples = |pixels: u32, own: usize, most: usize| (pixels as usize * own).div_ceil(most);
        [
            samples(self.width, component.across, self.most_across()),
            samples(self.height, component.down, self.most_down()),
        ]
    }

    /// How many blocks of the component are in the picture, where it is alone in a scan.
    pub(crate) fn blocks(&self, component: &Component) -> (usize, usize) {
        let [across, down] = self.samples(component);
        (across.div_ceil(SIDE), down.div_ceil(SIDE))
    }

    /// What [`crate::decode`] takes, in bytes.
    pub fn memory(&self, eighths: u32) -> u64 {
        let (across, down) = self.units();
        let in_unit: usize = self.components().iter().map(|component| component.across * component.down).sum();
        let blocks = (across * down * in_unit) as u64;
        let kept = u64::from(eighths.clamp(1, 8).pow(2));
        blocks * kept + if self.progressive { blocks * Coefficients::bytes_of_block(kept) } else { 0 }
    }
}

impl Component {
    fn check(&self) -> Result<(), Error> {
        if (1..=4).contains(&self.across) && (1..=4).contains(&self.down) {
            return Ok(());
        }
        let sampled = format!("sampled {} x {} times", self.across, self.down);
        Err(Error::Damaged(format!("the JPEG is damaged: it has a colour {sampled}")))
    }
}

const PROGRESSIVE: u8 = 0xc2;
/// Announces a picture of several frames, each a difference to the one before.
const HIERARCHICAL: u8 = 0xde;
/// The frame of JPEG-LS, a format of its own behind the same first bytes.
const JPEG_LS: u8 = 0xf7;

/// All frames there are; in the same range are tables and an extension.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf | HIERARCHICAL | JPEG_LS) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn can_be_read(marker: u8, precision: u8, height: u16, components: u8) -> Result<(), Error> {
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
    Err(Error::Unsupported(format!("{kind} is not supported: save it anew as an ordinary JPEG")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(marker: u8, content: &[u8]) -> Frame {
        Frame::read(marker, content).expect("long enough").expect("a kind that can be read")
    }

    const HALVED: &[u8] = b"\x08\0\x11\0\x21\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";

    #[test]
    fn blocks_are_counted_to_whole_units_and_alone() {
        let frame = readable(0xc2, HALVED);
        assert_eq!((frame.width, frame.height, frame.progressive), (33, 17, true));
        assert_eq!(frame.units(), (3, 2));
        assert_eq!(frame.blocks(&frame.components()[0]), (5, 3));
        assert_eq!(frame.blocks(&frame.components()[1]), (3, 2));
        assert_eq!(frame.samples(&frame.components()[1]), [17, 9]);
        assert_eq!(frame.sampling(&frame.components()[1]), [0.5, 0.5]);
        assert_eq!(frame.memory(8), 3 * 2 * 6 * (64 + 128 + 8));
        assert_eq!(frame.memory(3), 3 * 2 * 6 * (9 + 18 + 8));
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
            assert_eq!(refusal(marker, content), Error::Unsupported(expected));
        }
        for sampling in [0x00, 0x01, 0x10, 0x15, 0x51, 0xff] {
            let content = [b"\x08\0\x11\0\x21\x01\x01", &[sampling, 0][..]].concat();
            assert!(matches!(refusal(0xc0, &content), Error::Damaged(_)), "{sampling:#x}");
        }
    }

    #[test]
    fn two_frames_are_refused() {
        let one = [b"\xff\xc0\0\x11", HALVED].concat();
        let file = |frames: usize| [b"\xff\xd8", &one.repeat(frames)[..], b"\xff\xda\0\x02\xff\xd9"].concat();
        assert_eq!(frame(&file(1)).expect("a frame").width, 33);
        let message = "the JPEG is damaged: it tells its size twice";
        assert_eq!(frame(&file(2)).expect_err("two"), Error::Damaged(message.into()));
        assert!(frame(&file(0)).is_err());
    }

    #[test]
    fn a_header_cut_short_is_none() {
        for end in 0..HALVED.len() {
            assert!(Frame::read(0xc0, &HALVED[..end]).is_none(), "cut at {end}");
        }
    }
}
