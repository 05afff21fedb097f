//! Where a second, closer look is worth its price.

use super::centerface::Sighting;
use super::picture::{Picture, Region};

/// Faces smaller than this in the first look, in pixels of it, are looked at again.
const SMALL: f32 = 20.0;
/// Faces that are weak in the first look are looked at again if they are smaller than this.
const MIDDLING: f32 = 64.0;
/// Below this score a face is weak.
const WEAK: f32 = 0.5;
/// The longest side of a tile, in pixels of the detector.
const SIDE: f32 = 640.0;
/// What all tiles of a photo have together at the most, in pixels of the detector: a photo of 1920 by 1920 once.
const AREA: f32 = 1920.0 * 1920.0;
/// A photo smaller than this is enlarged for the closer look.
const SPARSE: usize = 1000;

/// A part of the photo to look at again.
#[derive(Debug)]
pub struct Tile {
    /// What of the photo.
    pub part: Region,
    /// How much larger the detector sees it.
    pub scale: f32,
}

/// Whether a face seen at this scale deserves a closer look.
pub fn wanted(hint: &Sighting, scale: f32) -> bool {
    let side = hint.shorter_side() * scale;
    side < SMALL || (side < MIDDLING && hint.score < WEAK)
}

/// Tiles that show every hint, the strongest first, with room around each.
pub fn tiles(picture: &Picture<'_>, hints: &[Sighting], first: f32) -> Vec<Tile> {
    let scale = if picture.width.max(picture.height) < SPARSE { 2.0 } else { 1.0_f32 };
    if scale < first * 1.5 {
        return Vec::new();
    }
    let mut waiting: Vec<Frame> = hints.iter().map(Frame::around).collect();
    let (mut tiles, mut area) = (Vec::new(), 0.0);
    while !waiting.is_empty() && area < AREA {
        // One tile grows around the strongest hint as long as it takes in others without getting too large.
        let mut frame = waiting.remove(0);
        waiting.retain(|other| {
            let both = frame.with(other);
            let joined = both.longer_side() * scale <= SIDE;
            if joined {
                frame = both;
            }
            !joined
        });
        let part = frame.region(picture);
        area += (part.width * part.height) as f32 * scale * scale;
        tiles.push(Tile { part, scale });
    }
    tiles
}

impl Tile {
    /// Whether a face is wholly in the tile: what an inner border cuts is another tile's, or nobody's.
    pub fn shows(&self, picture: &Picture<'_>, sighting: &Sighting) -> bool {
        let clear = |axis: usize, from: usize, size: usize, whole: usize| {
            let margin = 0.1 * sighting.size()[axis];
            (from == 0 || sighting.from[axis] - margin > from as f32)
                && (from + size == whole || sighting.to[axis] + margin < (from + size) as f32)
        };
        clear(0, self.part.x, self.part.width, picture.width) && clear(1, self.part.y, self.part.height, picture.height)
    }
}

/// A rectangle in pixels of the photo.
#[derive(Debug, Clone, Copy)]
struct Frame {
    from: [f32; 2],
    to: [f32; 2],
}

impl Frame {
    /// A hint with the room that tells a face from what is around it.
    fn around(hint: &Sighting) -> Self {
        let room = 1.5 * hint.size()[0].max(hint.size()[1]).max(16.0);
        Self { from: hint.from.map(|edge| edge - room), to: hint.to.map(|edge| edge + room) }
    }

    fn with(&self, other: &Self) -> Self {
        Self {
            from: [self.from[0].min(other.from[0]), self.from[1].min(other.from[1])],
            to: [self.to[0].max(other.to[0]), self.to[1].max(other.to[1])],
        }
    }

    fn longer_side(&self) -> f32 {
        (self.to[0] - self.from[0]).max(self.to[1] - self.from[1])
    }

    /// What of it the photo has.
    fn region(&self, picture: &Picture<'_>) -> Region {
        let span = |axis: usize, size: usize| {
            let low = (self.from[axis].max(0.0) as usize).min(size - 1);
            let high = (self.to[axis].ceil().max(0.0) as usize).clamp(low + 1, size);
            (low, high - low)
        };
        let (x, width) = span(0, picture.width);
        let (y, height) = span(1, picture.height);
        Region { x, y, width, height }
    }
}
