//! From RGB to the standard's colours: full-size brightness, half-size colour.

use std::sync::LazyLock;

/// Planes of whole macroblocks; what is beyond the picture repeats its edge.
#[derive(Debug)]
pub(crate) struct Planes {
    /// Macroblocks across.
    pub(crate) columns: usize,
    /// Macroblocks down.
    pub(crate) rows: usize,
    pub(crate) y: Vec<u8>,
    pub(crate) u: Vec<u8>,
    pub(crate) v: Vec<u8>,
}

impl Planes {
    /// Of `width * height` pixels, three bytes each.
    pub(crate) fn of(rgb: &[u8], width: usize, height: usize) -> Self {
        let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
        let mut planes = Self {
            columns,
            rows,
            y: vec![0; columns * rows * 256],
            u: vec![0; columns * rows * 64],
            v: vec![0; columns * rows * 64],
        };
        let row_of = |y: usize| &rgb[y.min(height - 1) * width * 3..][..width * 3];
        for (y, line) in planes.y.chunks_exact_mut(columns * 16).enumerate() {
            brightness(row_of(y), line);
        }
        let lines = planes.u.chunks_exact_mut(columns * 8).zip(planes.v.chunks_exact_mut(columns * 8));
        for (y, (u, v)) in lines.enumerate() {
            colour(row_of(y * 2), row_of(y * 2 + 1), u, v);
        }
        planes
    }
}

fn brightness(rgb: &[u8], line: &mut [u8]) {
    let (pixels, _) = rgb.as_chunks::<3>();
    for (y, [r, g, b]) in line.iter_mut().zip(pixels) {
        let sum = 16_839 * u32::from(*r) + 33_059 * u32::from(*g) + 6_420 * u32::from(*b);
        *y = ((sum + (16 << 16) + (1 << 15)) >> 16) as u8;
    }
    repeat_last(line, pixels.len());
}

fn colour(above: &[u8], below: &[u8], u: &mut [u8], v: &mut [u8]) {
    let tables = &*TABLES;
    let pixels = above.len() / 3;
    let mut put = |n: usize, [a, b, c, d]: [[u8; 3]; 4]| {
        let mean = |channel: usize| tables.mean([a[channel], b[channel], c[channel], d[channel]]);
        let (r, g, b) = (mean(0), mean(1), mean(2));
        u[n] = clip(-9_719 * r - 19_081 * g + 28_800 * b);
        v[n] = clip(28_800 * r - 24_116 * g - 4_684 * b);
    };
    let (above, above_rest) = above.as_chunks::<6>();
    let (below, below_rest) = below.as_chunks::<6>();
    for (n, ([r, g, b, s, h, c], [t, i, d, w, j, e])) in above.iter().zip(below).enumerate() {
        put(n, [[*r, *g, *b], [*s, *h, *c], [*t, *i, *d], [*w, *j, *e]]);
    }
    if let ([r, g, b], [s, h, c]) = (above_rest, below_rest) {
        put(above.len(), [[*r, *g, *b], [*r, *g, *b], [*s, *h, *c], [*s, *h, *c]]);
    }
    repeat_last(u, pixels.div_ceil(2));
    repeat_last(v, pixels.div_ceil(2));
}

fn clip(colour: i32) -> u8 {
    ((colour + (128 << 18) + (1 << 17)) >> 18).clamp(0, 255) as u8
}

fn repeat_last(line: &mut [u8], pixels: usize) {
    let last = line[pixels - 1];
    line[pixels..].fill(last);
}

/// Colours are averaged as light is, nearly: a mean of stored values would darken edges between bright colours.
struct Tables {
    light: [u16; 256],
    /// Four times the stored value, by the sum of four lights.
    stored: Vec<u16>,
}

impl Tables {
    fn mean(&self, values: [u8; 4]) -> i32 {
        let light: usize = values.iter().map(|value| usize::from(self.light[usize::from(*value)])).sum();
        i32::from(self.stored[light])
    }
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    const GAMMA: f64 = 0.8;
    const FULL: f64 = 4095.0;
    let light = std::array::from_fn(|value| ((value as f64 / 255.0).powf(GAMMA) * FULL + 0.5) as u16);
    let stored = |sum: usize| (4.0 * 255.0 * (sum as f64 / (4.0 * FULL)).powf(1.0 / GAMMA) + 0.5) as u16;
    Tables { light, stored: (0..=4 * 4095).map(stored).collect() }
});
