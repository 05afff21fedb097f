//! The detector: one look at one part of a photo.

use rten_tensor::NdTensor;

use super::align::{Landmarks, Place};
use super::lanes::Lane;
use super::models::CENTERFACE;
use super::network::{LoadError, Network};
use super::picture::{Picture, Region};

/// The model takes sides that are multiples of this.
const STEP: usize = 32;
/// Pixels of the input for each cell of the output, across and down.
const STRIDE: usize = 4;

/// Something that looks like a face, in pixels of the photo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sighting {
    /// How sure the detector is, 0 to 1.
    pub score: f32,
    /// The upper left corner of its box.
    pub from: Place,
    /// The lower right corner of its box.
    pub to: Place,
    /// Eyes, nose and corners of the mouth.
    pub landmarks: Landmarks,
}

impl Sighting {
    /// Pixels across and down.
    pub fn size(&self) -> Place {
        [self.to[0] - self.from[0], self.to[1] - self.from[1]]
    }

    /// The same with a box that ends where the picture ends.
    pub fn within(self, picture: &Picture<'_>) -> Self {
        let inside = |[x, y]: Place| [x.clamp(0.0, picture.width as f32), y.clamp(0.0, picture.height as f32)];
        Self { from: inside(self.from), to: inside(self.to), ..self }
    }

    /// The shorter side of its box.
    pub fn shorter_side(&self) -> f32 {
        self.size()[0].min(self.size()[1])
    }
}

/// CenterFace: every cell of its output says whether a face is centred there, and where its parts are.
pub struct CenterFace(Network<4>);

impl CenterFace {
    /// Loads the model.
    pub fn load() -> Result<Self, LoadError> {
        Ok(Self(Network::load(&CENTERFACE, ["537", "538", "539", "540"])?))
    }

    /// What looks like a face in a part of the picture brought to this size, strongest first.
    pub fn look(
        &self,
        picture: &Picture<'_>,
        part: Region,
        size: [usize; 2],
        least: f32,
        lane: &Lane<'_>,
    ) -> Vec<Sighting> {
        let [width, height] = size;
        let (across, down) = (width.next_multiple_of(STEP), height.next_multiple_of(STEP));
        let rgb = picture.resized(part, width, height);
        let heads = self.0.run(input(&rgb, width, across, down), lane);
        let grid = Grid { heads: &heads, columns: across / STRIDE, rows: down / STRIDE };
        let scale = [part.width as f32 / width as f32, part.height as f32 / height as f32];
        let place = |[x, y]: Place| [part.x as f32 + x * scale[0], part.y as f32 + y * scale[1]];
        let mut found: Vec<_> =
            grid.peaks(least).map(|(column, row)| grid.sighting(column, row).placed(place)).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }
}

impl Sighting {
    /// The same where the photo has it.
    fn placed(self, place: impl Fn(Place) -> Place) -> Self {
        Self { from: place(self.from), to: place(self.to), landmarks: self.landmarks.map(place), ..self }
    }
}

/// A channel after the other, black beyond the picture.
fn input(rgb: &[u8], width: usize, across: usize, down: usize) -> NdTensor<f32, 4> {
    let mut planes = vec![0.0; 3 * across * down];
    for (y, row) in rgb.chunks_exact(width * 3).enumerate() {
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            for (channel, value) in pixel.iter().enumerate() {
                planes[(channel * down + y) * across + x] = f32::from(*value);
            }
        }
    }
    NdTensor::from_data([1, 3, down, across], planes)
}

/// The output: a score, a size (down, across), an offset (down, across) and five landmarks (down, across) for each cell.
struct Grid<'a> {
    heads: &'a [Vec<f32>; 4],
    columns: usize,
    rows: usize,
}

impl Grid<'_> {
    fn value(&self, head: usize, channel: usize, column: usize, row: usize) -> f32 {
        self.heads[head][(channel * self.rows + row) * self.columns + column]
    }

    /// The cells of at least this score with no better one around them.
    fn peaks(&self, least: f32) -> impl Iterator<Item = (usize, usize)> {
        let cells = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (column, row)));
        cells.filter(move |&(column, row)| {
            let score = self.value(0, 0, column, row);
            let around = |at: usize, size: usize| at.saturating_sub(1)..(at + 2).min(size);
            // Of equal neighbours the first is the peak.
            let beats = |c: usize, r: usize| match self.value(0, 0, c, r) {
                other if (r, c) < (row, column) => score > other,
                other => score >= other,
            };
            score >= least && around(row, self.rows).all(|r| around(column, self.columns).all(|c| beats(c, r)))
        })
    }

    /// What a cell says, in pixels of the input.
    fn sighting(&self, column: usize, row: usize) -> Sighting {
        let stride = STRIDE as f32;
        let value = |head, channel| self.value(head, channel, column, row);
        // No face is larger than the largest input by much; the bound keeps nonsense finite.
        let size = [value(1, 1), value(1, 0)].map(|log| log.min(6.0).exp() * stride);
        let centre = [(column as f32 + 0.5 + value(2, 1)) * stride, (row as f32 + 0.5 + value(2, 0)) * stride];
        let from = [centre[0] - size[0] / 2.0, centre[1] - size[1] / 2.0];
        let landmark = |n: usize| [from[0] + value(3, 2 * n + 1) * size[0], from[1] + value(3, 2 * n) * size[1]];
        Sighting {
            score: value(0, 0),
            from,
            to: [from[0] + size[0], from[1] + size[1]],
            landmarks: std::array::from_fn(landmark),
        }
    }
}
