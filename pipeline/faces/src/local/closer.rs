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
/// So many small faces are a crowd, in which others are too small for the first look.
const CROWD: usize = 5;
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

/// Tiles that show every hint with room around it.
pub fn tiles(picture: &Picture<'_>, hints: &[Sighting], first: f32) -> Vec<Tile> {
    let Some(scale) = closer(picture, first) else { return Vec::new() };
    // From top to bottom, so that tiles lie side by side as far as hints do.
    let mut waiting: Vec<Frame> = hints.iter().map(Frame::around).collect();
    waiting.sort_by(|a, b| a.from[1].total_cmp(&b.from[1]));
    let mut frames = Vec::new();
    while !waiting.is_empty() {
        // A tile grows around one hint as long as it takes in others without getting too large.
        let mut frame = waiting.remove(0);
        waiting.retain(|other| {
            let both = frame.with(other);
            let joined = both.longer_side() * scale <= SIDE;
            if joined {
                frame = both;
            }
            !joined
        });
        frames.push(frame);
    }
    bounded(picture, frames, scale)
}

/// Tiles that show all of a crowd, given the faces found in it; none where there is no crowd.
pub fn crowd(picture: &Picture<'_>, faces: &[Sighting], first: f32) -> Vec<Tile> {
    let Some(scale) = closer(picture, first) else { return Vec::new() };
    let small: Vec<_> = faces.iter().filter(|face| face.shorter_side() * first < SMALL).collect();
    let Some(whole) = small.iter().map(|face| Frame::around(face)).reduce(|all, frame| all.with(&frame)) else {
        return Vec::new();
    };
    if small.len() < CROWD {
        return Vec::new();
    }
    // Tiles overlap by more than a face, so that each face is wholly in one.
    let side = SIDE / scale;
    let overlap = small.iter().fold(0.0_f32, |most, face| most.max(1.5 * face.size()[1])).min(side / 2.0);
    let spans = |axis: usize| {
        let (from, length) = (whole.from[axis], whole.to[axis] - whole.from[axis]);
        let count = ((length - overlap) / (side - overlap)).ceil().max(1.0);
        let step = (length - overlap) / count;
        (0..count as usize).map(move |n| from + n as f32 * step).map(move |from| (from, from + step + overlap))
    };
    let cells = spans(1)
        .flat_map(|(top, bottom)| spans(0).map(move |(left, right)| Frame { from: [left, top], to: [right, bottom] }));
    bounded(picture, cells.collect(), scale)
}

/// The scale of a closer look, if it shows more than the first one did.
fn closer(picture: &Picture<'_>, first: f32) -> Option<f32> {
    let scale = if picture.width.max(picture.height) < SPARSE { 2.0 } else { 1.0_f32 };
    (scale >= first * 1.5).then_some(scale)
}

/// As many of the frames as a photo may have.
fn bounded(picture: &Picture<'_>, frames: Vec<Frame>, scale: f32) -> Vec<Tile> {
    let mut area = 0.0;
    let tiles = frames.into_iter().map(|frame| Tile { part: frame.region(picture), scale });
    tiles
        .take_while(|tile| {
            area += (tile.part.width * tile.part.height) as f32 * scale * scale;
            area <= AREA
        })
        .collect()
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
