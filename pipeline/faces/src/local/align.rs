//! Alignment of faces: crops in which eyes, nose and mouth are where a model expects them.

use super::image_view::{ImageView, Region};

/// A point in pixels: x, y.
pub type PixelPoint = [f32; 2];

/// Eyes, nose and mouth corners, those on the left of the image first.
pub type Landmarks = [PixelPoint; 5];

/// A square RGB crop of a face, aligned to a template.
pub struct AlignedCrop {
    /// Width and height in pixels.
    pub side: usize,
    /// `side * side` pixels.
    pub rgb: Vec<[f32; 3]>,
}

impl AlignedCrop {
    /// Returns the mirror image.
    pub fn mirrored(&self) -> Self {
        Self { side: self.side, rgb: self.rgb.chunks(self.side).flat_map(|row| row.iter().rev().copied()).collect() }
    }
}

/// A similarity transform (rotation, uniform scaling, translation): `x' = a x - b y + c`, `y' = b x + a y + d`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarityTransform {
    /// Cosine of the rotation times the scale.
    pub a: f32,
    /// Sine of the rotation times the scale.
    pub b: f32,
    /// Translation along x.
    pub c: f32,
    /// Translation along y.
    pub d: f32,
}

impl SimilarityTransform {
    /// Estimates the transform between two sets of points by least squares (Umeyama 1991, without reflection). Returns `None` if
    /// all points coincide.
    pub fn estimate(from: &Landmarks, to: &Landmarks) -> Option<Self> {
        let (from_mean, to_mean) = (mean(from), mean(to));
        let (mut along, mut across, mut spread) = (0.0, 0.0, 0.0);
        for (f, t) in from.iter().zip(to) {
            let (f, t) = (subtract(*f, from_mean), subtract(*t, to_mean));
            along += f[0] * t[0] + f[1] * t[1];
            across += f[0] * t[1] - f[1] * t[0];
            spread += f[0] * f[0] + f[1] * f[1];
        }
        let (a, b) = (along / spread, across / spread);
        let transform = Self {
            a,
            b,
            c: to_mean[0] - a * from_mean[0] + b * from_mean[1],
            d: to_mean[1] - b * from_mean[0] - a * from_mean[1],
        };
        (transform.scale() > 0.0 && transform.scale().is_finite()).then_some(transform)
    }

    /// Returns the scale factor.
    pub fn scale(&self) -> f32 {
        self.a.hypot(self.b)
    }

    /// Maps a point.
    pub fn apply(&self, [x, y]: PixelPoint) -> PixelPoint {
        [self.a * x - self.b * y + self.c, self.b * x + self.a * y + self.d]
    }

    /// Returns the inverse transform.
    pub fn inverse(&self) -> Self {
        let square = self.a * self.a + self.b * self.b;
        let (a, b) = (self.a / square, -self.b / square);
        Self { a, b, c: -(a * self.c - b * self.d), d: -(b * self.c + a * self.d) }
    }
}

/// Crops the face so that its landmarks match the template. Returns `None` if the landmarks coincide.
pub fn align(image: &ImageView<'_>, landmarks: &Landmarks, template: &Landmarks, side: usize) -> Option<AlignedCrop> {
    Some(warp(image, &SimilarityTransform::estimate(landmarks, template)?, side))
}

/// Warps the image to a square; edge pixels are repeated beyond the image.
pub fn warp(image: &ImageView<'_>, transform: &SimilarityTransform, side: usize) -> AlignedCrop {
    let inverse = transform.inverse();
    // Bilinear sampling reads two by two pixels, so a reduction to less than half is averaged first.
    let shrink = (1.0 / transform.scale()).floor().min(1e4) as usize;
    if shrink < 2 {
        return sample(side, |x, y| bilinear(inverse.apply([x, y]), |x, y| image.pixel(x, y)));
    }
    let Some(region) = source_region(image, &inverse, side, shrink) else {
        return sample(side, |x, y| {
            image.pixel(inverse.apply([x, y])[0] as isize, inverse.apply([x, y])[1] as isize).map(f32::from)
        });
    };
    let (width, height) = (region.width.div_ceil(shrink), region.height.div_ceil(shrink));
    let small = box_downscale(image, region, shrink);
    let pixel = |x: isize, y: isize| {
        let x = x.clamp(0, width as isize - 1) as usize;
        let y = y.clamp(0, height as isize - 1) as usize;
        small[y * width + x]
    };
    let shrink = shrink as f32;
    sample(side, |x, y| {
        let [x, y] = inverse.apply([x, y]);
        let to_region = |at: f32, start: usize| (at + 0.5 - start as f32) / shrink - 0.5;
        bilinear([to_region(x, region.x), to_region(y, region.y)], pixel)
    })
}

/// Creates a crop by computing every pixel.
fn sample(side: usize, pixel: impl Fn(f32, f32) -> [f32; 3]) -> AlignedCrop {
    let points = (0..side * side).map(|n| ((n % side) as f32, (n / side) as f32));
    AlignedCrop { side, rgb: points.map(|(x, y)| pixel(x, y)).collect() }
}

/// Bilinear interpolation of four pixels.
fn bilinear<P: Copy + Into<f32>>([x, y]: PixelPoint, pixel: impl Fn(isize, isize) -> [P; 3]) -> [f32; 3] {
    let (left, top) = (x.floor(), y.floor());
    let (right, low) = (x - left, y - top);
    let (column, row) = (left as isize, top as isize);
    // Far outside, the cast saturates: adding one must not overflow.
    let (next_column, next_row) = (column.saturating_add(1), row.saturating_add(1));
    let upper = [pixel(column, row), pixel(next_column, row)];
    let lower = [pixel(column, next_row), pixel(next_column, next_row)];
    std::array::from_fn(|c| {
        let mix = |pair: [[P; 3]; 2]| pair[0][c].into() * (1.0 - right) + pair[1][c].into() * right;
        mix(upper) * (1.0 - low) + mix(lower) * low
    })
}

/// Returns the region of the image that a crop needs.
fn source_region(image: &ImageView<'_>, inverse: &SimilarityTransform, side: usize, margin: usize) -> Option<Region> {
    let far = side as f32;
    let corners = [[0.0, 0.0], [far, 0.0], [0.0, far], [far, far]].map(|corner| inverse.apply(corner));
    let span = |axis: usize, size: usize| {
        let low = corners.iter().fold(f32::INFINITY, |low, corner| low.min(corner[axis])) - margin as f32;
        let high = corners.iter().fold(f32::NEG_INFINITY, |high, corner| high.max(corner[axis])) + margin as f32;
        let (low, high) = (low.clamp(0.0, size as f32) as usize, high.clamp(0.0, size as f32) as usize);
        (low < high).then_some((low, high - low))
    };
    let (x, width) = span(0, image.width)?;
    let (y, height) = span(1, image.height)?;
    Some(Region { x, y, width, height })
}

/// Downscales a region by averaging blocks of pixels.
fn box_downscale(image: &ImageView<'_>, region: Region, block: usize) -> Vec<[f32; 3]> {
    let mut small = Vec::with_capacity(region.width.div_ceil(block) * region.height.div_ceil(block));
    for top in (region.y..region.y + region.height).step_by(block) {
        for left in (region.x..region.x + region.width).step_by(block) {
            let (right, bottom) =
                ((left + block).min(region.x + region.width), (top + block).min(region.y + region.height));
            let mut sum = [0_u64; 3];
            for y in top..bottom {
                for x in left..right {
                    let pixel = image.pixel(x as isize, y as isize);
                    sum = std::array::from_fn(|c| sum[c] + u64::from(pixel[c]));
                }
            }
            let count = ((right - left) * (bottom - top)) as f32;
            small.push(sum.map(|channel| channel as f32 / count));
        }
    }
    small
}

fn mean(points: &Landmarks) -> PixelPoint {
    let sum = points.iter().fold([0.0, 0.0], |sum, point| [sum[0] + point[0], sum[1] + point[1]]);
    sum.map(|axis| axis / points.len() as f32)
}

fn subtract(a: PixelPoint, b: PixelPoint) -> PixelPoint {
    [a[0] - b[0], a[1] - b[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: Landmarks = [[30.0, 40.0], [70.0, 42.0], [50.0, 60.0], [35.0, 80.0], [66.0, 81.0]];

    fn check(found: PixelPoint, expected: PixelPoint) {
        assert!(
            (found[0] - expected[0]).abs() < 1e-3 && (found[1] - expected[1]).abs() < 1e-3,
            "{found:?}, {expected:?}"
        );
    }

    #[test]
    fn a_similarity_transform_is_recovered() {
        let (sin, cos) = 0.4_f32.sin_cos();
        let expected = SimilarityTransform { a: 1.7 * cos, b: 1.7 * sin, c: -20.0, d: 35.0 };
        let found = SimilarityTransform::estimate(&FACE, &FACE.map(|point| expected.apply(point))).expect("points");
        for point in FACE {
            check(found.apply(point), expected.apply(point));
            check(found.inverse().apply(found.apply(point)), point);
        }
        assert!((found.scale() - 1.7).abs() < 1e-4);
    }

    #[test]
    fn the_least_squares_transform_matches_a_known_one() {
        // Computed by hand: the variance of `from` is 10, the parallel products sum to 13, the perpendicular ones to 0.
        let from = [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, -2.0], [0.0, 2.0]];
        let to = [[-2.5, 0.0], [2.5, 0.0], [0.0, 0.0], [0.0, -2.0], [0.0, 2.0]];
        assert_eq!(
            SimilarityTransform::estimate(&from, &to),
            Some(SimilarityTransform { a: 1.3, b: 0.0, c: 0.0, d: 0.0 })
        );
    }

    #[test]
    fn coinciding_points_have_no_transform() {
        assert_eq!(SimilarityTransform::estimate(&[[3.0, 4.0]; 5], &FACE), None);
        assert_eq!(SimilarityTransform::estimate(&FACE, &[[3.0, 4.0]; 5]), None);
        assert_eq!(SimilarityTransform::estimate(&[[f32::NAN, 4.0]; 5], &FACE), None);
    }

    #[test]
    fn a_warp_keeps_gradients_and_repeats_the_edge() {
        let rgb: Vec<u8> = (0..100 * 80).flat_map(|n| [(n % 100 * 2) as u8, (n / 100 * 3) as u8, 7]).collect();
        let image = ImageView::new(100, 80, &rgb).expect("pixels");
        for scale in [0.1_f32, 0.3, 0.45, 0.7, 1.0, 2.5] {
            let crop = warp(&image, &SimilarityTransform { a: scale, b: 0.0, c: 0.0, d: 0.0 }, 6);
            for (n, rgb) in crop.rgb.iter().enumerate() {
                // Beyond the edge the last value is repeated; blocks at the edge are smaller, so that starts a little early.
                let [x, y] = [n % 6, n / 6].map(|at| at as f32 / scale);
                let near = |found: f32, expected: f32| (found - expected).abs() < 3.0 * (1.0 / scale).max(1.0);
                assert!(near(rgb[0], x.min(99.0) * 2.0) && near(rgb[1], y.min(79.0) * 3.0), "{scale} {n} {rgb:?}");
                assert!((rgb[2] - 7.0).abs() < 1e-3, "{scale} {n} {rgb:?}");
            }
        }
    }

    #[test]
    fn fine_stripes_become_grey_when_downscaled() {
        let rgb: Vec<u8> = (0..200 * 200).flat_map(|n| [if n % 2 == 0 { 0 } else { 255 }; 3]).collect();
        let image = ImageView::new(200, 200, &rgb).expect("pixels");
        let crop = warp(&image, &SimilarityTransform { a: 0.25, b: 0.0, c: 0.0, d: 0.0 }, 40);
        assert!(crop.rgb.iter().all(|rgb| (rgb[0] - 127.5).abs() < 1.0));
    }

    #[test]
    fn mirroring_swaps_left_and_right() {
        let crop = AlignedCrop { side: 2, rgb: vec![[1.0; 3], [2.0; 3], [3.0; 3], [4.0; 3]] };
        assert_eq!(crop.mirrored().rgb, [[2.0; 3], [1.0; 3], [4.0; 3], [3.0; 3]]);
    }
}
