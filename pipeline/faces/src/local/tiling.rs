//! Tiles of a photo for a second detection pass at a higher resolution.

use super::centerface::Detection;
use super::image_view::{ImageView, Region};

/// Faces smaller than this in the first pass, in its pixels, are detected again.
const SMALL: f32 = 20.0;
/// Faces with a low score in the first pass are detected again if they are smaller than this.
const MEDIUM: f32 = 64.0;
/// A lower score is weak.
const WEAK: f32 = 0.5;
/// The longest side of a tile, in pixels of the detector's input.
const TILE_SIDE: f32 = 640.0;
/// Largest area of all tiles together, in pixels of the detector's input: a photo of 1920 by 1920 once.
const MAX_AREA: f32 = 1920.0 * 1920.0;
/// This many small faces are a crowd, in which others may be too small for the first pass.
const CROWD: usize = 5;
/// A photo smaller than this is enlarged for the second pass.
const MIN_LONG_SIDE: usize = 1000;

/// A tile for the second pass.
#[derive(Debug)]
pub struct Tile {
    /// The region of the photo.
    pub region: Region,
    /// The scale of the detector's input.
    pub scale: f32,
}

/// Returns whether a candidate of the first pass at this scale is to be detected again.
pub fn needs_tile(candidate: &Detection, scale: f32) -> bool {
    let side = candidate.shorter_side() * scale;
    side < SMALL || (side < MEDIUM && candidate.score < WEAK)
}

/// Returns tiles that contain every candidate with a margin.
pub fn tiles_for_candidates(image: &ImageView<'_>, candidates: &[Detection], first: f32) -> Vec<Tile> {
    let Some(scale) = tile_scale(image, first) else { return Vec::new() };
    // From top to bottom, so that neighbouring candidates share tiles.
    let mut waiting: Vec<Rect> = candidates.iter().map(Rect::around).collect();
    waiting.sort_by(|a, b| a.top_left[1].total_cmp(&b.top_left[1]));
    let mut rects = Vec::new();
    while !waiting.is_empty() {
        // A tile grows to contain further candidates as long as it does not exceed the side.
        let mut rect = waiting.remove(0);
        waiting.retain(|other| {
            let both = rect.union(other);
            let fits = both.longer_side() * scale <= TILE_SIDE;
            if fits {
                rect = both;
            }
            !fits
        });
        rects.push(rect);
    }
    limit_area(image, rects, scale)
}

/// Returns tiles that cover a crowd, given the faces found in it; none if there is no crowd.
pub fn tiles_for_crowd(image: &ImageView<'_>, faces: &[Detection], first: f32) -> Vec<Tile> {
    let Some(scale) = tile_scale(image, first) else { return Vec::new() };
    let small: Vec<_> = faces.iter().filter(|face| face.shorter_side() * first < SMALL).collect();
    let Some(bounds) = small.iter().map(|face| Rect::around(face)).reduce(|all, rect| all.union(&rect)) else {
        return Vec::new();
    };
    if small.len() < CROWD {
        return Vec::new();
    }
    // Tiles overlap by more than a face, so that each face is completely in one.
    let side = TILE_SIDE / scale;
    let overlap = small.iter().fold(0.0_f32, |max, face| max.max(1.5 * face.size()[1])).min(side / 2.0);
    let spans = |axis: usize| {
        let (start, length) = (bounds.top_left[axis], bounds.bottom_right[axis] - bounds.top_left[axis]);
        let count = ((length - overlap) / (side - overlap)).ceil().max(1.0);
        let step = (length - overlap) / count;
        (0..count as usize).map(move |n| start + n as f32 * step).map(move |start| (start, start + step + overlap))
    };
    let cells = spans(1).flat_map(|(top, bottom)| {
        spans(0).map(move |(left, right)| Rect { top_left: [left, top], bottom_right: [right, bottom] })
    });
    limit_area(image, cells.collect(), scale)
}

/// Returns the scale of the second pass, if it is sufficiently larger than that of the first.
fn tile_scale(image: &ImageView<'_>, first: f32) -> Option<f32> {
    let scale = if image.width.max(image.height) < MIN_LONG_SIDE { 2.0 } else { 1.0_f32 };
    (scale >= first * 1.5).then_some(scale)
}

/// Drops tiles beyond the largest total area.
fn limit_area(image: &ImageView<'_>, rects: Vec<Rect>, scale: f32) -> Vec<Tile> {
    let mut area = 0.0;
    let tiles = rects.into_iter().map(|rect| Tile { region: rect.region(image), scale });
    tiles
        .take_while(|tile| {
            area += (tile.region.width * tile.region.height) as f32 * scale * scale;
            area <= MAX_AREA
        })
        .collect()
}

impl Tile {
    /// Returns whether a face is completely in the tile. A face cut by an inner border is left to the neighbouring tile.
    pub fn contains(&self, image: &ImageView<'_>, detection: &Detection) -> bool {
        let is_clear = |axis: usize, start: usize, size: usize, full: usize| {
            let margin = 0.1 * detection.size()[axis];
            (start == 0 || detection.top_left[axis] - margin > start as f32)
                && (start + size == full || detection.bottom_right[axis] + margin < (start + size) as f32)
        };
        is_clear(0, self.region.x, self.region.width, image.width)
            && is_clear(1, self.region.y, self.region.height, image.height)
    }
}

/// A rectangle in pixels of the photo; it may exceed the photo.
#[derive(Debug, Clone, Copy)]
struct Rect {
    top_left: [f32; 2],
    bottom_right: [f32; 2],
}

impl Rect {
    /// Returns the bounding box of a candidate with the context that the detector needs.
    fn around(candidate: &Detection) -> Self {
        let margin = 1.5 * candidate.size()[0].max(candidate.size()[1]).max(16.0);
        Self {
            top_left: candidate.top_left.map(|edge| edge - margin),
            bottom_right: candidate.bottom_right.map(|edge| edge + margin),
        }
    }

    fn union(&self, other: &Self) -> Self {
        let (a, b) = (self, other);
        Self {
            top_left: [a.top_left[0].min(b.top_left[0]), a.top_left[1].min(b.top_left[1])],
            bottom_right: [a.bottom_right[0].max(b.bottom_right[0]), a.bottom_right[1].max(b.bottom_right[1])],
        }
    }

    fn longer_side(&self) -> f32 {
        (self.bottom_right[0] - self.top_left[0]).max(self.bottom_right[1] - self.top_left[1])
    }

    /// Returns the part within the photo.
    fn region(&self, image: &ImageView<'_>) -> Region {
        let span = |axis: usize, size: usize| {
            let low = (self.top_left[axis].max(0.0) as usize).min(size - 1);
            let high = (self.bottom_right[axis].ceil().max(0.0) as usize).clamp(low + 1, size);
            (low, high - low)
        };
        let (x, width) = span(0, image.width);
        let (y, height) = span(1, image.height);
        Region { x, y, width, height }
    }
}
