//! Reads a marker: whether it is one, how sharp it is, and its vector.

use super::marker::{CELLS, MARGIN, MODULES};
use super::marker_frame::{Frame, is_magenta, magenta};
use super::raster::{Raster, luma};

/// The measurements of one marker; positions and sizes in pixels.
pub(super) struct MarkerReading {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) confidence: f32,
    pub(super) sharpness: f32,
    pub(super) vector: Vec<f32>,
}

/// Required share of the colour on each side of the frame and of the ring. An image that happens to contain a magenta square has
/// no white one inside it on all four sides.
const FRAME_SHARE: f32 = 0.85;
const RING_SHARE: f32 = 0.8;

/// Required share of grey cells.
const GREY_SHARE: f32 = 0.9;

/// Required standard deviation of the cells' luma; a lower one is an empty marker.
const MIN_SPREAD: f32 = 3.0;

/// The luma step from magenta to white.
const EDGE: f32 = 149.7;

/// Reads the marker in this frame, or returns `None` if there is none.
pub(super) fn read_marker(raster: &Raster<'_>, frame: &Frame) -> Option<MarkerReading> {
    let grid = Grid::new(raster, frame).refined();
    let frame_sides = grid.sides(0.5, is_magenta);
    let ring_sides = grid.sides(1.5, is_white);
    if frame_sides.iter().any(|share| *share < FRAME_SHARE) || ring_sides.iter().any(|share| *share < RING_SHARE) {
        return None;
    }
    Some(MarkerReading {
        left: grid.left,
        top: grid.top,
        width: grid.module_width * MODULES as f32,
        height: grid.module_height * MODULES as f32,
        confidence: frame_sides.iter().sum::<f32>() / 4.0,
        sharpness: grid.sharpness(),
        vector: grid.vector()?,
    })
}

/// Tolerant, because a thin ring blends with the colours beside it.
fn is_white([r, g, b]: [u8; 3]) -> bool {
    r.min(g).min(b) >= 140
}

fn is_grey([r, g, b]: [u8; 3]) -> bool {
    r.max(g).max(b) - r.min(g).min(b) <= 56
}

/// The pixels of a marker in module coordinates: (0, 0) is the upper left corner of its frame, (16, 16) the lower right one.
struct Grid<'a> {
    raster: &'a Raster<'a>,
    left: f32,
    top: f32,
    /// Pixels per module, horizontally.
    module_width: f32,
    /// Pixels per module, vertically.
    module_height: f32,
}

impl<'a> Grid<'a> {
    fn new(raster: &'a Raster<'a>, frame: &Frame) -> Self {
        Self {
            raster,
            left: frame.left as f32,
            top: frame.top as f32,
            module_width: frame.width() as f32 / MODULES as f32,
            module_height: frame.height() as f32 / MODULES as f32,
        }
    }

    fn at(&self, u: f32, v: f32) -> [u8; 3] {
        self.raster.at(self.left + u * self.module_width, self.top + v * self.module_height)
    }

    /// Returns the pixel at this depth from a side and this distance along it.
    fn pixel_at_depth(&self, side: usize, depth: f32, along: f32) -> [u8; 3] {
        let far = MODULES as f32 - depth;
        match side {
            0 => self.at(along, depth),
            1 => self.at(far, along),
            2 => self.at(along, far),
            _ => self.at(depth, along),
        }
    }

    /// Returns the grid with subpixel edges. Compression smears the frame's colour over its edge, and a box of whole pixels around
    /// that is too large to locate the cells of a small marker.
    fn refined(self) -> Self {
        let [top, right, bottom, left] = std::array::from_fn(|side| self.edge_offset(side));
        let module_width = self.module_width - (left + right) / MODULES as f32;
        let module_height = self.module_height - (top + bottom) / MODULES as f32;
        Self { left: self.left + left, top: self.top + top, module_width, module_height, ..self }
    }

    /// Returns how many pixels inside the box a side of the frame begins: where half of its colour is reached.
    fn edge_offset(&self, side: usize) -> f32 {
        let module = self.module(side);
        let colour = |pixel: usize| -> f32 {
            // Starts at the pixel outside, from which a crisp edge rises.
            let depth = (pixel as f32 - 0.5) / module;
            let line = (MARGIN..=MODULES - MARGIN)
                .map(|along| f32::from(magenta(self.pixel_at_depth(side, depth, along as f32))));
            line.sum()
        };
        let profile: Vec<f32> = (0..module as usize + 3).map(colour).collect();
        let half = profile.iter().copied().fold(0.0, f32::max) / 2.0;
        let rise = profile.windows(2).position(|pair| pair[0] < half && pair[1] >= half);
        rise.map_or(0.0, |n| n as f32 + (half - profile[n]) / (profile[n + 1] - profile[n]) - 0.5)
    }

    /// Returns the pixels per module at right angles to a side.
    fn module(&self, side: usize) -> f32 {
        if side.is_multiple_of(2) { self.module_height } else { self.module_width }
    }

    /// Returns for each side the share of its pixels at this depth that match.
    fn sides(&self, depth: f32, matches: fn([u8; 3]) -> bool) -> [f32; 4] {
        const PER_MODULE: f32 = 8.0;
        let steps = (depth * PER_MODULE) as usize..=((MODULES as f32 - depth) * PER_MODULE) as usize;
        std::array::from_fn(|side| {
            let matching = steps
                .clone()
                .filter(|step| matches(self.pixel_at_depth(side, depth, *step as f32 / PER_MODULE)))
                .count();
            matching as f32 / steps.clone().count() as f32
        })
    }

    /// Returns the steepest luma step between neighbouring pixels from the frame into the ring, as a share of the full step. Blur
    /// spreads the step over more pixels.
    fn sharpness(&self) -> f32 {
        let mut total = 0.0;
        let lines = MARGIN..=MODULES - MARGIN;
        for side in 0..4 {
            let module = self.module(side);
            // At least three pixels, so that the step is among them even if the frame is thin.
            let pixels = (module.ceil() as usize).max(2);
            for line in lines.clone() {
                let luma_at = |n: usize| {
                    let depth = 1.0 + (n as f32 - pixels as f32 / 2.0) / module;
                    luma(self.pixel_at_depth(side, depth, line as f32))
                };
                let steps = (0..pixels).map(|n| (luma_at(n + 1) - luma_at(n)).max(0.0));
                total += steps.fold(0.0, f32::max);
            }
        }
        (total / (4 * lines.count()) as f32 / EDGE).clamp(0.0, 1.0)
    }

    /// Returns the luma of every cell minus the mean, or `None` if the cells are coloured or uniform.
    fn vector(&self) -> Option<Vec<f32>> {
        let mut grey = 0.0;
        let mut cells = Vec::with_capacity(CELLS * CELLS);
        for row in MARGIN..MARGIN + CELLS {
            for column in MARGIN..MARGIN + CELLS {
                grey += f32::from(u8::from(is_grey(self.at(column as f32 + 0.5, row as f32 + 0.5))));
                cells.push(self.cell(column as f32, row as f32));
            }
        }
        let count = cells.len() as f32;
        let mean = cells.iter().sum::<f32>() / count;
        cells.iter_mut().for_each(|cell| *cell -= mean);
        let spread = (cells.iter().map(|cell| cell * cell).sum::<f32>() / count).sqrt();
        (grey / count >= GREY_SHARE && spread >= MIN_SPREAD).then_some(cells)
    }

    /// Returns the mean luma of the inner half of a cell: its border blends with the neighbours.
    fn cell(&self, column: f32, row: f32) -> f32 {
        const OFFSETS: [f32; 4] = [0.3125, 0.4375, 0.5625, 0.6875];
        let all = OFFSETS.iter().flat_map(|v| OFFSETS.iter().map(move |u| (u, v)));
        all.map(|(u, v)| luma(self.at(column + u, row + v))).sum::<f32>() / (OFFSETS.len() * OFFSETS.len()) as f32
    }
}
