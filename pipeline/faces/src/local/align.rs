//! Cutting a face out so that its eyes, nose and mouth are where a model expects them.

use super::picture::{Picture, Region};

/// A place in pixels: from the left, from the top.
pub type Place = [f32; 2];

/// Eyes, nose and corners of the mouth, what is on the left of the picture first.
pub type Landmarks = [Place; 5];

/// A square picture of a face, RGB.
pub struct Crop {
    /// Pixels across and down.
    pub side: usize,
    /// `side * side` pixels.
    pub rgb: Vec<[f32; 3]>,
}

impl Crop {
    /// Its mirror image.
    pub fn mirrored(&self) -> Self {
        Self { side: self.side, rgb: self.rgb.chunks(self.side).flat_map(|row| row.iter().rev().copied()).collect() }
    }
}

/// Turning, scaling and moving: `x' = a x - b y + c`, `y' = b x + a y + d`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// Cosine of the turn times the scale.
    pub a: f32,
    /// Sine of the turn times the scale.
    pub b: f32,
    /// Moved to the right.
    pub c: f32,
    /// Moved down.
    pub d: f32,
}

impl Similarity {
    /// The one that brings the places nearest to the others, by the sum of squares (Umeyama 1991, without mirroring).
    /// `None` where all places are one.
    pub fn between(from: &Landmarks, to: &Landmarks) -> Option<Self> {
        let (from_mean, to_mean) = (mean(from), mean(to));
        let (mut along, mut across, mut spread) = (0.0, 0.0, 0.0);
        for (f, t) in from.iter().zip(to) {
            let (f, t) = (minus(*f, from_mean), minus(*t, to_mean));
            along += f[0] * t[0] + f[1] * t[1];
            across += f[0] * t[1] - f[1] * t[0];
            spread += f[0] * f[0] + f[1] * f[1];
        }
        let (a, b) = (along / spread, across / spread);
        let found = Self {
            a,
            b,
            c: to_mean[0] - a * from_mean[0] + b * from_mean[1],
            d: to_mean[1] - b * from_mean[0] - a * from_mean[1],
        };
        (found.scale() > 0.0 && found.scale().is_finite()).then_some(found)
    }

    /// How much larger things become.
    pub fn scale(&self) -> f32 {
        self.a.hypot(self.b)
    }

    /// Where a place goes.
    pub fn apply(&self, [x, y]: Place) -> Place {
        [self.a * x - self.b * y + self.c, self.b * x + self.a * y + self.d]
    }

    /// The way back.
    pub fn inverse(&self) -> Self {
        let square = self.a * self.a + self.b * self.b;
        let (a, b) = (self.a / square, -self.b / square);
        Self { a, b, c: -(a * self.c - b * self.d), d: -(b * self.c + a * self.d) }
    }
}

/// The face cut out of the picture, with its landmarks on those of the template. `None` where the landmarks are one place.
pub fn align(picture: &Picture<'_>, landmarks: &Landmarks, template: &Landmarks, side: usize) -> Option<Crop> {
    Some(warp(picture, &Similarity::between(landmarks, template)?, side))
}

/// The square that the similarity makes of the picture; beyond the picture its border goes on.
pub fn warp(picture: &Picture<'_>, similarity: &Similarity, side: usize) -> Crop {
    let back = similarity.inverse();
    // Bilinear sampling sees two pixels by two, so what shrinks to less than half is averaged before.
    let shrink = (1.0 / similarity.scale()).floor().min(1e4) as usize;
    if shrink < 2 {
        return sample(side, |x, y| bilinear(back.apply([x, y]), |x, y| picture.at(x, y)));
    }
    let Some(part) = reach(picture, &back, side, shrink) else {
        return sample(side, |x, y| {
            picture.at(back.apply([x, y])[0] as isize, back.apply([x, y])[1] as isize).map(f32::from)
        });
    };
    let (width, height) = (part.width.div_ceil(shrink), part.height.div_ceil(shrink));
    let small = averaged(picture, part, shrink);
    let at = |x: isize, y: isize| {
        let x = x.clamp(0, width as isize - 1) as usize;
        let y = y.clamp(0, height as isize - 1) as usize;
        small[y * width + x]
    };
    let shrink = shrink as f32;
    sample(side, |x, y| {
        let [x, y] = back.apply([x, y]);
        let inside = |at: f32, from: usize| (at + 0.5 - from as f32) / shrink - 0.5;
        bilinear([inside(x, part.x), inside(y, part.y)], at)
    })
}

/// Every pixel of a square.
fn sample(side: usize, pixel: impl Fn(f32, f32) -> [f32; 3]) -> Crop {
    let places = (0..side * side).map(|n| ((n % side) as f32, (n / side) as f32));
    Crop { side, rgb: places.map(|(x, y)| pixel(x, y)).collect() }
}

/// The mean of four pixels, the nearer the more.
fn bilinear<P: Copy + Into<f32>>([x, y]: Place, at: impl Fn(isize, isize) -> [P; 3]) -> [f32; 3] {
    let (left, top) = (x.floor(), y.floor());
    let (right, low) = (x - left, y - top);
    let (column, row) = (left as isize, top as isize);
    // Far outside, the conversion saturates: one further must not overflow.
    let (next_column, next_row) = (column.saturating_add(1), row.saturating_add(1));
    let upper = [at(column, row), at(next_column, row)];
    let lower = [at(column, next_row), at(next_column, next_row)];
    std::array::from_fn(|c| {
        let mix = |pair: [[P; 3]; 2]| pair[0][c].into() * (1.0 - right) + pair[1][c].into() * right;
        mix(upper) * (1.0 - low) + mix(lower) * low
    })
}

/// The part of the picture that a crop sees.
fn reach(picture: &Picture<'_>, back: &Similarity, side: usize, margin: usize) -> Option<Region> {
    let far = side as f32;
    let corners = [[0.0, 0.0], [far, 0.0], [0.0, far], [far, far]].map(|corner| back.apply(corner));
    let span = |axis: usize, size: usize| {
        let low = corners.iter().fold(f32::INFINITY, |low, corner| low.min(corner[axis])) - margin as f32;
        let high = corners.iter().fold(f32::NEG_INFINITY, |high, corner| high.max(corner[axis])) + margin as f32;
        let (low, high) = (low.clamp(0.0, size as f32) as usize, high.clamp(0.0, size as f32) as usize);
        (low < high).then_some((low, high - low))
    };
    let (x, width) = span(0, picture.width)?;
    let (y, height) = span(1, picture.height)?;
    Some(Region { x, y, width, height })
}

/// The part, each pixel being the mean of a block.
fn averaged(picture: &Picture<'_>, part: Region, block: usize) -> Vec<[f32; 3]> {
    let mut small = Vec::with_capacity(part.width.div_ceil(block) * part.height.div_ceil(block));
    for top in (part.y..part.y + part.height).step_by(block) {
        for left in (part.x..part.x + part.width).step_by(block) {
            let (right, bottom) = ((left + block).min(part.x + part.width), (top + block).min(part.y + part.height));
            let mut sum = [0_u64; 3];
            for y in top..bottom {
                for x in left..right {
                    let pixel = picture.at(x as isize, y as isize);
                    sum = std::array::from_fn(|c| sum[c] + u64::from(pixel[c]));
                }
            }
            let count = ((right - left) * (bottom - top)) as f32;
            small.push(sum.map(|channel| channel as f32 / count));
        }
    }
    small
}

fn mean(places: &Landmarks) -> Place {
    let sum = places.iter().fold([0.0, 0.0], |sum, place| [sum[0] + place[0], sum[1] + place[1]]);
    sum.map(|axis| axis / places.len() as f32)
}

fn minus(a: Place, b: Place) -> Place {
    [a[0] - b[0], a[1] - b[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: Landmarks = [[30.0, 40.0], [70.0, 42.0], [50.0, 60.0], [35.0, 80.0], [66.0, 81.0]];

    fn check(found: Place, expected: Place) {
        assert!(
            (found[0] - expected[0]).abs() < 1e-3 && (found[1] - expected[1]).abs() < 1e-3,
            "{found:?}, {expected:?}"
        );
    }

    #[test]
    fn a_similarity_is_found_again() {
        let (sin, cos) = 0.4_f32.sin_cos();
        let made = Similarity { a: 1.7 * cos, b: 1.7 * sin, c: -20.0, d: 35.0 };
        let found = Similarity::between(&FACE, &FACE.map(|place| made.apply(place))).expect("places");
        for place in FACE {
            check(found.apply(place), made.apply(place));
            check(found.inverse().apply(found.apply(place)), place);
        }
        assert!((found.scale() - 1.7).abs() < 1e-4);
    }

    #[test]
    fn the_nearest_similarity_is_the_known_one() {
        // By hand: the spread of `from` is 10, the products along are 13, those across are 0.
        let from = [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, -2.0], [0.0, 2.0]];
        let to = [[-2.5, 0.0], [2.5, 0.0], [0.0, 0.0], [0.0, -2.0], [0.0, 2.0]];
        assert_eq!(Similarity::between(&from, &to), Some(Similarity { a: 1.3, b: 0.0, c: 0.0, d: 0.0 }));
    }

    #[test]
    fn one_place_has_no_similarity() {
        assert_eq!(Similarity::between(&[[3.0, 4.0]; 5], &FACE), None);
        assert_eq!(Similarity::between(&FACE, &[[3.0, 4.0]; 5]), None);
        assert_eq!(Similarity::between(&[[f32::NAN, 4.0]; 5], &FACE), None);
    }

    #[test]
    fn a_warp_keeps_a_slope_and_continues_the_border() {
        let rgb: Vec<u8> = (0..100 * 80).flat_map(|n| [(n % 100 * 2) as u8, (n / 100 * 3) as u8, 7]).collect();
        let picture = Picture::new(100, 80, &rgb).expect("pixels");
        for scale in [0.1_f32, 0.3, 0.45, 0.7, 1.0, 2.5] {
            let crop = warp(&picture, &Similarity { a: scale, b: 0.0, c: 0.0, d: 0.0 }, 6);
            for (n, rgb) in crop.rgb.iter().enumerate() {
                // Where the picture ends, the last value goes on; blocks at the edge are smaller, so it is met a little early.
                let [x, y] = [n % 6, n / 6].map(|at| at as f32 / scale);
                let near = |found: f32, expected: f32| (found - expected).abs() < 3.0 * (1.0 / scale).max(1.0);
                assert!(near(rgb[0], x.min(99.0) * 2.0) && near(rgb[1], y.min(79.0) * 3.0), "{scale} {n} {rgb:?}");
                assert!((rgb[2] - 7.0).abs() < 1e-3, "{scale} {n} {rgb:?}");
            }
        }
    }

    #[test]
    fn fine_stripes_become_grey_when_they_shrink() {
        let rgb: Vec<u8> = (0..200 * 200).flat_map(|n| [if n % 2 == 0 { 0 } else { 255 }; 3]).collect();
        let picture = Picture::new(200, 200, &rgb).expect("pixels");
        let crop = warp(&picture, &Similarity { a: 0.25, b: 0.0, c: 0.0, d: 0.0 }, 40);
        assert!(crop.rgb.iter().all(|rgb| (rgb[0] - 127.5).abs() < 1.0));
    }

    #[test]
    fn the_mirror_changes_sides() {
        let crop = Crop { side: 2, rgb: vec![[1.0; 3], [2.0; 3], [3.0; 3], [4.0; 3]] };
        assert_eq!(crop.mirrored().rgb, [[2.0; 3], [1.0; 3], [4.0; 3], [3.0; 3]]);
    }
}
