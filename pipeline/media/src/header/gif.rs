//! GIF header: a logical screen, then blocks (image descriptors and extensions) whose data is split into sub-blocks of up to
//! 255 bytes.

use sparks_domain::{RejectCode, Rejection};

use crate::reject;

const SIGNATURE: usize = 6;
const EXTENSION: u8 = 0x21;
const FRAME: u8 = 0x2c;

/// The structure of a GIF file.
#[derive(Debug)]
pub(super) struct Gif {
    /// Size of the logical screen.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) frames: u32,
    first: Option<Frame>,
}

/// An image descriptor: a rectangle of the screen.
#[derive(Debug, Clone, Copy)]
struct Frame {
    left: u32,
    width: u32,
    height: u32,
}

impl Gif {
    pub(super) fn read(file: &[u8]) -> Option<Result<Self, Rejection>> {
        let (&[a, b, c, d, flags, _, _], after) = file.get(SIGNATURE..)?.split_first_chunk()?;
        let mut rest = after.get(colour_table_bytes(flags)..)?;
        let [width, height] = [[a, b], [c, d]].map(|side| u32::from(u16::from_le_bytes(side)));
        let mut gif = Self { width, height, frames: 0, first: None };
        while let Some((block, after)) = next(rest) {
            rest = after;
            if let Block::Frame(frame) = block {
                gif.frames += 1;
                gif.first.get_or_insert(frame);
            }
        }
        Some(gif.check())
    }

    fn check(self) -> Result<Self, Rejection> {
        match self.first {
            Some(Frame { width, height, .. }) if width == 0 || height == 0 => {
                let message = format!("the GIF is damaged: its first frame is {width} x {height} pixels");
                Err(reject(RejectCode::Damaged, message))
            }
            None => Err(reject(RejectCode::Damaged, "the GIF has no frame: the file is empty or truncated")),
            Some(_) => Ok(self),
        }
    }

    /// Returns the memory of decoding: the screen, and a buffer for the first frame unless it spans the width of the screen.
    pub(super) fn memory(&self) -> u64 {
        const RGBA: u64 = 4;
        let screen = u64::from(self.width) * u64::from(self.height);
        let needs_buffer = |frame: &Frame| frame.left > 0 || frame.width != self.width || frame.height > self.height;
        let frame = self.first.filter(needs_buffer).map_or(0, |frame| u64::from(frame.width) * u64::from(frame.height));
        (screen + frame) * RGBA
    }
}

enum Block {
    Frame(Frame),
    Other,
}

/// Returns the next block. A truncated frame still counts; the decoder reports it.
fn next(rest: &[u8]) -> Option<(Block, &[u8])> {
    match rest.split_first()? {
        (&EXTENSION, after) => Some((Block::Other, skip_sub_blocks(after.get(1..)?))),
        (&FRAME, after) => {
            let (&[l, m, _, _, a, b, c, d, flags], after) = after.split_first_chunk()?;
            let [left, width, height] = [[l, m], [a, b], [c, d]].map(|side| u32::from(u16::from_le_bytes(side)));
            let data = after.get(colour_table_bytes(flags) + 1..).unwrap_or_default();
            Some((Block::Frame(Frame { left, width, height }), skip_sub_blocks(data)))
        }
        // Some encoders write the block terminator twice.
        (0, after) => Some((Block::Other, after)),
        _ => None,
    }
}

fn skip_sub_blocks(mut rest: &[u8]) -> &[u8] {
    while let Some((length, after)) = rest.split_first() {
        rest = after.get(usize::from(*length)..).unwrap_or_default();
        if *length == 0 {
            break;
        }
    }
    rest
}

/// Returns the size of the colour table that the flags announce.
fn colour_table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b",\0\0\0\0\x04\0\x02\0\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0";

    fn gif(blocks: &[&[u8]]) -> Result<Gif, Rejection> {
        Gif::read(&[b"GIF89a\x04\0\x03\0\0\0\0", &blocks.concat()[..]].concat()).expect("a screen")
    }

    #[test]
    fn frames_are_counted_and_extensions_are_not() {
        let extension = b"!\xf9\x04\0\0\0\0\0";
        let gif = gif(&[extension, FRAME, extension, FRAME, b"\0", FRAME, b";", FRAME]).expect("a GIF");
        assert_eq!((gif.width, gif.height, gif.frames), (4, 3, 3));
        assert_eq!(gif.memory(), 4 * 3 * 4);
    }

    #[test]
    fn a_frame_larger_than_the_screen_counts_in_full() {
        let gif = gif(&[b",\0\0\0\0\xff\xff\xff\xff\0\x02\0"]).expect("a GIF");
        assert_eq!(gif.memory(), (4 * 3 + 65_535 * 65_535) * 4);
    }

    #[test]
    fn gifs_without_frame_or_size_are_damaged() {
        assert!(gif(&[b";"]).is_err());
        assert!(gif(&[b",\0\0\0\0\0\0\x02\0\0\x02\0"]).is_err());
        assert!(Gif::read(b"GIF89a\x04\0\x03\0\0\0").is_none());
    }
}
