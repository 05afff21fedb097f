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
