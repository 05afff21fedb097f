//! Finds possible frames of markers: connected magenta pixels with a square bounding box.

use super::raster::Raster;

/// The bounding box of connected magenta pixels; `right` and `bottom` are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) right: usize,
    pub(super) bottom: usize,
}

/// In a smaller frame a cell is less than a pixel and cannot be measured.
const MIN_SIDE: usize = 12;

/// A quarter of full magenta, because compression smears colour most.
const MAGENTA: u8 = 64;

/// Returns how magenta a pixel is: by how much red and blue exceed green.
pub(super) fn magenta([r, g, b]: [u8; 3]) -> u8 {
    r.min(b).saturating_sub(g)
}

pub(super) fn is_magenta(pixel: [u8; 3]) -> bool {
    magenta(pixel) >= MAGENTA
}

/// Returns the bounding boxes that are nearly square and large enough.
pub(super) fn find(raster: &Raster<'_>) -> Vec<Frame> {
    let mut components = ConnectedComponents::default();
    let (mut above, mut current) = (Vec::new(), Vec::new());
    for (y, row) in raster.rows().enumerate() {
        current.clear();
        find_runs(row, &mut current);
        components.add_row(y, &above, &mut current);
        std::mem::swap(&mut above, &mut current);
    }
    components.boxes().filter(Frame::may_be_marker).collect()
}

impl Frame {
    pub(super) fn width(&self) -> usize {
        self.right - self.left + 1
    }

    pub(super) fn height(&self) -> usize {
        self.bottom - self.top + 1
    }

    fn may_be_marker(&self) -> bool {
        let (shorter, longer) = (self.width().min(self.height()), self.width().max(self.height()));
        shorter >= MIN_SIDE && longer - shorter <= (longer / 12).max(2)
    }

    fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// A run of magenta pixels in one row.
struct PixelRun {
    first: usize,
    last: usize,
    component: usize,
}

fn find_runs(row: &[u8], found: &mut Vec<PixelRun>) {
    let mut open = None;
    let mut x = 0;
    for pixel in row.chunks_exact(3) {
        let magenta = is_magenta([pixel[0], pixel[1], pixel[2]]);
        match (magenta, open) {
            (true, None) => open = Some(x),
            (false, Some(first)) => {
                found.push(PixelRun { first, last: x - 1, component: 0 });
                open = None;
            }
            _ => {}
        }
        x += 1;
    }
    found.extend(open.map(|first| PixelRun { first, last: x - 1, component: 0 }));
}

/// Connected components by run-based labelling with union-find. A root has the bounding box of its whole component.
#[derive(Default)]
struct ConnectedComponents {
    parents: Vec<usize>,
    boxes: Vec<Frame>,
}

impl ConnectedComponents {
    /// Adds the runs of a row (8-connectivity: a thin frame may be connected at corners only).
    fn add_row(&mut self, y: usize, above: &[PixelRun], row: &mut [PixelRun]) {
        let mut start = 0;
        for run in row {
            run.component = self.parents.len();
            self.parents.push(run.component);
            self.boxes.push(Frame { left: run.first, top: y, right: run.last, bottom: y });
            while above.get(start).is_some_and(|other| other.last + 1 < run.first) {
                start += 1;
            }
            for other in above[start..].iter().take_while(|other| other.first <= run.last + 1) {
                self.join(other.component, run.component);
            }
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parents[b] = a;
            self.boxes[a] = self.boxes[a].union(self.boxes[b]);
        }
    }

    fn root(&mut self, mut component: usize) -> usize {
        while self.parents[component] != component {
            // Path halving.
            self.parents[component] = self.parents[self.parents[component]];
            component = self.parents[component];
        }
        component
    }

    fn boxes(&self) -> impl Iterator<Item = Frame> {
        self.parents.iter().zip(&self.boxes).enumerate().filter(|(n, (parent, _))| n == *parent).map(|(_, (_, b))| *b)
    }
}
