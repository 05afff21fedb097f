//! Reading a marker: is it one, how well can it be seen, and what does it look like.

use super::frame::{Frame, is_magenta, magenta};
use super::marker::{CELLS, MARGIN, MODULES};
use super::raster::{Raster, luma};

/// What was measured of one marker; places and sizes in pixels.
pub(super) struct Reading {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) confidence: f32,
    pub(super) sharpness: f32,
    pub(super) vector: Vec<f32>,
}

/// What each side of the frame and the ring must have of its colour. A picture that happens to have a square of magenta
/// in it does not have a white one inside on all four sides.
const FRAME_SHARE: f32 = 0.85;
const RING_SHARE: f32 = 0.8;

/// What of the cells must be grey.
const GREY_SHARE: f32 = 0.9;

/// A marker whose cells spread less, in steps of luma, shows nobody.
const MIN_SPREAD: f32 = 3.0;

/// The step of luma from magenta to white.
const EDGE: f32 = 149.7;

/// The marker in this frame, or nothing where it is none.
pub(super) fn read(raster: &Raster<'_>, frame: &Frame) -> Option<Reading> {
    let grid = Grid::new(raster, frame).refined();
    let frame_sides = grid.sides(0.5, is_magenta);
    let ring_sides = grid.sides(1.5, is_white);
    if frame_sides.iter().any(|share| *share < FRAME_SHARE) || ring_sides.iter().any(|share| *share < RING_SHARE) {
        return None;
    }
    Some(Reading {
        left: grid.left,
        top: grid.top,
        width: grid.across * MODULES as f32,
        height: grid.down * MODULES as f32,
        confidence: frame_sides.iter().sum::<f32>() / 4.0,
        sharpness: grid.sharpness(),
        vector: grid.vector()?,
    })
}

/// Tolerant: a thin ring takes on the colours beside it.
fn is_white([r, g, b]: [u8; 3]) -> bool {
    r.min(g).min(b) >= 140
}

fn is_grey([r, g, b]: [u8; 3]) -> bool {
    r.max(g).max(b) - r.min(g).min(b) <= 56
}

/// The pixels of a marker by modules: (0, 0) is the upper left corner of its frame, (16, 16) the lower right one.
struct Grid<'a> {
    raster: &'a Raster<'a>,
    left: f32,
    top: f32,
    /// Pixels per module.
    across: f32,
    down: f32,
}

impl<'a> Grid<'a> {
    fn new(raster: &'a Raster<'a>, frame: &Frame) -> Self {
        Self {
            raster,
            left: frame.left as f32,
            top: frame.top as f32,
            across: frame.width() as f32 / MODULES as f32,
            down: frame.height() as f32 / MODULES as f32,
        }
    }

    fn at(&self, u: f32, v: f32) -> [u8; 3] {
        self.raster.at(self.left + u * self.across, self.top + v * self.down)
    }

    /// The pixel so deep inside a side, so far along it.
    fn beside(&self, side: usize, depth: f32, along: f32) -> [u8; 3] {
        let far = MODULES as f32 - depth;
        match side {
            0 => self.at(along, depth),
            1 => self.at(far, along),
            2 => self.at(along, far),
            _ => self.at(depth, along),
        }
    }

    /// The same grid with its edges between pixels. Compression smears the frame's colour over its edge, and a box of
    /// whole pixels around the smear is too large to find the cells of a small marker.
    fn refined(self) -> Self {
        let [top, right, bottom, left] = std::array::from_fn(|side| self.smear(side));
        let (across, down) =
            (self.across - (left + right) / MODULES as f32, self.down - (top + bottom) / MODULES as f32);
        Self { left: self.left + left, top: self.top + top, across, down, ..self }
    }

    /// How many pixels inside the box a side of the frame begins: where half of its colour is reached.
    fn smear(&self, side: usize) -> f32 {
        let module = self.module(side);
        let colour = |pixel: usize| -> f32 {
            // From the pixel outside on: that is where a crisp edge rises from.
            let depth = (pixel as f32 - 0.5) / module;
            let line =
                (MARGIN..=MODULES - MARGIN).map(|along| f32::from(magenta(self.beside(side, depth, along as f32))));
            line.sum()
        };
        let profile: Vec<f32> = (0..module as usize + 3).map(colour).collect();
        let half = profile.iter().copied().fold(0.0, f32::max) / 2.0;
        let rise = profile.windows(2).position(|pair| pair[0] < half && pair[1] >= half);
        rise.map_or(0.0, |n| n as f32 + (half - profile[n]) / (profile[n + 1] - profile[n]) - 0.5)
    }

    /// Pixels per module, going inside from a side.
    fn module(&self, side: usize) -> f32 {
        if side.is_multiple_of(2) { self.down } else { self.across }
    }

    /// For each side, the share of its pixels at this depth that look right.
    fn sides(&self, depth: f32, right: fn([u8; 3]) -> bool) -> [f32; 4] {
        const PER_MODULE: f32 = 8.0;
        let steps = (depth * PER_MODULE) as usize..=((MODULES as f32 - depth) * PER_MODULE) as usize;
        std::array::from_fn(|side| {
            let good = steps.clone().filter(|step| right(self.beside(side, depth, *step as f32 / PER_MODULE))).count();
            good as f32 / steps.clone().count() as f32
        })
    }

    /// The steepest step of luma between neighbouring pixels from the frame into the ring, as a share of the whole step.
    /// A lens or a resize that blurs spreads the step over more pixels.
    fn sharpness(&self) -> f32 {
        let mut total = 0.0;
        let lines = MARGIN..=MODULES - MARGIN;
        for side in 0..4 {
            let module = self.module(side);
            // At least three pixels, so that the step is among them however thin the frame is.
            let pixels = (module.ceil() as usize).max(2);
            for line in lines.clone() {
                let luma_at = |n: usize| {
                    let depth = 1.0 + (n as f32 - pixels as f32 / 2.0) / module;
                    luma(self.beside(side, depth, line as f32))
                };
                let steps = (0..pixels).map(|n| (luma_at(n + 1) - luma_at(n)).max(0.0));
                total += steps.fold(0.0, f32::max);
            }
        }
        (total / (4 * lines.count()) as f32 / EDGE).clamp(0.0, 1.0)
    }

    /// The luma of every cell with the mean taken off; nothing where the cells are coloured or all the same.
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

    /// The mean luma of the inner half of a cell: its rim is mixed with its neighbours.
    fn cell(&self, column: f32, row: f32) -> f32 {
        const PLACES: [f32; 4] = [0.3125, 0.4375, 0.5625, 0.6875];
        let all = PLACES.iter().flat_map(|v| PLACES.iter().map(move |u| (u, v)));
        all.map(|(u, v)| luma(self.at(column + u, row + v))).sum::<f32>() / (PLACES.len() * PLACES.len()) as f32
    }
}
