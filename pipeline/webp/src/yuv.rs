//! From RGB to the standard's colours: full-size brightness, half-size colour.

use std::sync::LazyLock;

use crate::sharpen::{FINER, sharpen};

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
    /// Of `width * height` pixels, three bytes each. Decoders blur colour when they enlarge it: `sharp` makes up for that.
    pub(crate) fn of(rgb: &[u8], width: usize, height: usize, sharp: bool) -> Self {
        let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
        let row_of = |y: usize| &rgb[y.min(height - 1) * width * 3..][..width * 3];
        let mut y = vec![0; columns * rows * 256];
        for (line, pixels) in y.chunks_exact_mut(columns * 16).enumerate() {
            brightness(row_of(line), pixels);
        }
        let (across, down) = (width.div_ceil(2), height.div_ceil(2));
        let (mut u, mut v) = (vec![0_i16; across * down], vec![0_i16; across * down]);
        for (line, (u, v)) in u.chunks_exact_mut(across).zip(v.chunks_exact_mut(across)).enumerate() {
            colour(row_of(line * 2), row_of((line * 2 + 1).min(height - 1)), u, v);
        }
        let finish = |plane: Vec<i16>| {
            let plane = if sharp { sharpen(plane, across) } else { plane };
            to_macroblocks(&plane, across, columns, rows)
        };
        Self { columns, rows, y, u: finish(u), v: finish(v) }
    }
}

/// Rounded, with its edge repeated.
fn to_macroblocks(plane: &[i16], across: usize, columns: usize, rows: usize) -> Vec<u8> {
    let mut whole = vec![0; columns * rows * 64];
    for (y, line) in whole.chunks_exact_mut(columns * 8).enumerate() {
        let at = (y * across).min(plane.len() - across);
        for (to, from) in line.iter_mut().zip(&plane[at..at + across]) {
            *to = ((from + FINER / 2) / FINER).clamp(0, 255) as u8;
        }
        repeat_last(line, across);
    }
    whole
}

fn brightness(rgb: &[u8], line: &mut [u8]) {
    let (pixels, _) = rgb.as_chunks::<3>();
    for (y, [r, g, b]) in line.iter_mut().zip(pixels) {
        let sum = 16_839 * u32::from(*r) + 33_059 * u32::from(*g) + 6_420 * u32::from(*b);
        *y = ((sum + (16 << 16) + (1 << 15)) >> 16) as u8;
    }
    repeat_last(line, pixels.len());
}

/// In steps of one in [`FINER`].
fn colour(above: &[u8], below: &[u8], u: &mut [i16], v: &mut [i16]) {
    let tables = &*TABLES;
    let mut put = |n: usize, [a, b, c, d]: [[u8; 3]; 4]| {
        let mean = |channel: usize| tables.mean([a[channel], b[channel], c[channel], d[channel]]);
        let (r, g, b) = (mean(0), mean(1), mean(2));
        u[n] = fine(-9_719 * r - 19_081 * g + 28_800 * b);
        v[n] = fine(28_800 * r - 24_116 * g - 4_684 * b);
    };
    let (above, above_rest) = above.as_chunks::<6>();
    let (below, below_rest) = below.as_chunks::<6>();
    for (n, ([r, g, b, s, h, c], [t, i, d, w, j, e])) in above.iter().zip(below).enumerate() {
        put(n, [[*r, *g, *b], [*s, *h, *c], [*t, *i, *d], [*w, *j, *e]]);
    }
    if let ([r, g, b], [s, h, c]) = (above_rest, below_rest) {
        put(above.len(), [[*r, *g, *b], [*r, *g, *b], [*s, *h, *c], [*s, *h, *c]]);
    }
}

fn fine(colour: i32) -> i16 {
    const SHIFT: u32 = 18 - FINER.ilog2();
    ((colour + (128 << 18) + (1 << (SHIFT - 1))) >> SHIFT) as i16
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
