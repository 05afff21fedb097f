//! Finding what may be the frame of a marker: connected magenta, as wide as high.

use super::raster::Raster;

/// The box around connected magenta pixels; `right` and `bottom` are the last ones inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) right: usize,
    pub(super) bottom: usize,
}

/// Below this a cell is less than a pixel, and whatever is read of it is made up.
const MIN_SIDE: usize = 12;

/// A quarter of full magenta: colour is what compression smears most.
const MAGENTA: u8 = 64;

/// How magenta a pixel is: by how much red and blue stand above green.
pub(super) fn magenta([r, g, b]: [u8; 3]) -> u8 {
    r.min(b).saturating_sub(g)
}

pub(super) fn is_magenta(pixel: [u8; 3]) -> bool {
    magenta(pixel) >= MAGENTA
}

/// All boxes that are nearly square and large enough.
pub(super) fn find(raster: &Raster<'_>) -> Vec<Frame> {
    let mut islands = Islands::default();
    let (mut above, mut current) = (Vec::new(), Vec::new());
    for (y, row) in raster.rows().enumerate() {
        current.clear();
        runs(row, &mut current);
        islands.add_row(y, &above, &mut current);
        std::mem::swap(&mut above, &mut current);
    }
    islands.roots().filter(Frame::may_be_marker).collect()
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

/// Neighbouring magenta pixels of one row.
struct Run {
    first: usize,
    last: usize,
    island: usize,
}

fn runs(row: &[u8], found: &mut Vec<Run>) {
    let mut open = None;
    let mut x = 0;
    for pixel in row.chunks_exact(3) {
        let magenta = is_magenta([pixel[0], pixel[1], pixel[2]]);
        match (magenta, open) {
            (true, None) => open = Some(x),
            (false, Some(first)) => {
                found.push(Run { first, last: x - 1, island: 0 });
                open = None;
            }
            _ => {}
        }
        x += 1;
    }
    found.extend(open.map(|first| Run { first, last: x - 1, island: 0 }));
}

/// Connected runs. An island that joined another points to it; one that points to itself is a root and has the box of all.
#[derive(Default)]
struct Islands {
    parents: Vec<usize>,
    boxes: Vec<Frame>,
}

impl Islands {
    /// Corners touch too: a thin frame may be worn down to them.
    fn add_row(&mut self, y: usize, above: &[Run], row: &mut [Run]) {
        let mut start = 0;
        for run in row {
            run.island = self.parents.len();
            self.parents.push(run.island);
            self.boxes.push(Frame { left: run.first, top: y, right: run.last, bottom: y });
            while above.get(start).is_some_and(|other| other.last + 1 < run.first) {
                start += 1;
            }
            for other in above[start..].iter().take_while(|other| other.first <= run.last + 1) {
                self.join(other.island, run.island);
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

    fn root(&mut self, mut island: usize) -> usize {
        while self.parents[island] != island {
            // Halving the path keeps it short for whoever asks next.
            self.parents[island] = self.parents[self.parents[island]];
            island = self.parents[island];
        }
        island
    }

    fn roots(&self) -> impl Iterator<Item = Frame> {
        self.parents.iter().zip(&self.boxes).enumerate().filter(|(n, (parent, _))| n == *parent).map(|(_, (_, b))| *b)
    }
}
