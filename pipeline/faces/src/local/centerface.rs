//! The CenterFace detector: one pass over one region of a photo.

use rten_tensor::NdTensor;

use super::align::{Landmarks, PixelPoint};
use super::image_view::{ImageView, Region};
use super::models::CENTERFACE;
use super::network::{LoadError, Network};
use super::thread_pools::PooledThread;

/// The sides of the model's input are multiples of this.
const INPUT_MULTIPLE: usize = 32;
/// Input pixels per output cell, horizontally and vertically.
const STRIDE: usize = 4;

/// A possible face, in pixels of the photo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detection {
    /// Confidence of the detector, 0 to 1.
    pub score: f32,
    /// The upper left corner of the bounding box.
    pub top_left: PixelPoint,
    /// The lower right corner of the bounding box.
    pub bottom_right: PixelPoint,
    /// Eyes, nose and mouth corners.
    pub landmarks: Landmarks,
}

impl Detection {
    /// Returns width and height.
    pub fn size(&self) -> PixelPoint {
        [self.bottom_right[0] - self.top_left[0], self.bottom_right[1] - self.top_left[1]]
    }

    /// Clips the bounding box to the image.
    pub fn clipped(self, image: &ImageView<'_>) -> Self {
        let clip = |[x, y]: PixelPoint| [x.clamp(0.0, image.width as f32), y.clamp(0.0, image.height as f32)];
        Self { top_left: clip(self.top_left), bottom_right: clip(self.bottom_right), ..self }
    }

    /// Returns the shorter side of the bounding box.
    pub fn shorter_side(&self) -> f32 {
        self.size()[0].min(self.size()[1])
    }
}

/// CenterFace (Xu et al. 2019): every output cell holds the score, size, offset and landmarks of a face centred there.
pub struct CenterFace(Network<4>);

impl CenterFace {
    /// Loads the model.
    pub fn load() -> Result<Self, LoadError> {
        Ok(Self(Network::load(&CENTERFACE, ["537", "538", "539", "540"])?))
    }

    /// Detects faces in a region of the image, resized to this size, best score first.
    pub fn detect(
        &self,
        image: &ImageView<'_>,
        region: Region,
        size: [usize; 2],
        min_score: f32,
        thread: &PooledThread<'_>,
    ) -> Vec<Detection> {
        let [width, height] = size;
        let (input_width, input_height) =
            (width.next_multiple_of(INPUT_MULTIPLE), height.next_multiple_of(INPUT_MULTIPLE));
        let rgb = image.resize(region, width, height);
        let heads = self.0.run(input(&rgb, width, input_width, input_height), thread);
        let grid = Grid { heads: &heads, columns: input_width / STRIDE, rows: input_height / STRIDE };
        let scale = [region.width as f32 / width as f32, region.height as f32 / height as f32];
        let to_photo = |[x, y]: PixelPoint| [region.x as f32 + x * scale[0], region.y as f32 + y * scale[1]];
        let peaks = grid.peaks(min_score);
        let mut found: Vec<_> = peaks.map(|(column, row)| grid.detection(column, row).map_points(to_photo)).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }
}

impl Detection {
    /// Maps all coordinates.
    fn map_points(self, map: impl Fn(PixelPoint) -> PixelPoint) -> Self {
        Self {
            top_left: map(self.top_left),
            bottom_right: map(self.bottom_right),
            landmarks: self.landmarks.map(map),
            ..self
        }
    }
}

/// Converts to planar channels, padded with black.
fn input(rgb: &[u8], width: usize, input_width: usize, input_height: usize) -> NdTensor<f32, 4> {
    let mut planes = vec![0.0; 3 * input_width * input_height];
    for (y, row) in rgb.chunks_exact(width * 3).enumerate() {
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            for (channel, value) in pixel.iter().enumerate() {
                planes[(channel * input_height + y) * input_width + x] = f32::from(*value);
            }
        }
    }
    NdTensor::from_data([1, 3, input_height, input_width], planes)
}

/// The output heads: score, size (y, x), offset (y, x) and five landmarks (y, x) of each cell.
struct Grid<'a> {
    heads: &'a [Vec<f32>; 4],
    columns: usize,
    rows: usize,
}

impl Grid<'_> {
    fn value(&self, head: usize, channel: usize, column: usize, row: usize) -> f32 {
        self.heads[head][(channel * self.rows + row) * self.columns + column]
    }

    /// Returns the cells of at least this score that are local maxima of their 3 x 3 neighbourhood.
    fn peaks(&self, min_score: f32) -> impl Iterator<Item = (usize, usize)> {
        let cells = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (column, row)));
        cells.filter(move |&(column, row)| {
            let score = self.value(0, 0, column, row);
            let neighbours = |at: usize, size: usize| at.saturating_sub(1)..(at + 2).min(size);
            // Of equal neighbours the first one is the maximum.
            let beats = |c: usize, r: usize| match self.value(0, 0, c, r) {
                other if (r, c) < (row, column) => score > other,
                other => score >= other,
            };
            let mut rows = neighbours(row, self.rows);
            score >= min_score && rows.all(|r| neighbours(column, self.columns).all(|c| beats(c, r)))
        })
    }

    /// Decodes a cell, in pixels of the input.
    fn detection(&self, column: usize, row: usize) -> Detection {
        let stride = STRIDE as f32;
        let value = |head, channel| self.value(head, channel, column, row);
        // The bound keeps invalid outputs finite; no face is much larger than the largest input.
        let size = [value(1, 1), value(1, 0)].map(|log| log.min(6.0).exp() * stride);
        let centre = [(column as f32 + 0.5 + value(2, 1)) * stride, (row as f32 + 0.5 + value(2, 0)) * stride];
        let top_left = [centre[0] - size[0] / 2.0, centre[1] - size[1] / 2.0];
        let landmark =
            |n: usize| [top_left[0] + value(3, 2 * n + 1) * size[0], top_left[1] + value(3, 2 * n) * size[1]];
        Detection {
            score: value(0, 0),
            top_left,
            bottom_right: [top_left[0] + size[0], top_left[1] + size[1]],
            landmarks: std::array::from_fn(landmark),
        }
    }
}
