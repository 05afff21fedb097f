//! Conversion of RGB to YUV 4:2:0 planes.

use std::sync::LazyLock;

use crate::sharp_yuv::{FRACTION, sharpen};

/// Planes of whole macroblocks; edge pixels are repeated beyond the image.
#[derive(Debug)]
pub(crate) struct Planes {
    /// Macroblocks per row.
    pub(crate) columns: usize,
    /// Rows of macroblocks.
    pub(crate) rows: usize,
    pub(crate) y: Vec<u8>,
    pub(crate) u: Vec<u8>,
    pub(crate) v: Vec<u8>,
}

impl Planes {
    /// Converts `width * height` pixels of three bytes. `sharp` compensates the blur of chroma upsampling in decoders.
    pub(crate) fn from_rgb(rgb: &[u8], width: usize, height: usize, sharp: bool) -> Self {
        let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
        let row_of = |y: usize| &rgb[y.min(height - 1) * width * 3..][..width * 3];
        let mut y = vec![0; columns * rows * 256];
        for (line, pixels) in y.chunks_exact_mut(columns * 16).enumerate() {
            convert_luma(row_of(line), pixels);
        }
        let (chroma_width, chroma_height) = (width.div_ceil(2), height.div_ceil(2));
        let chroma_samples = chroma_width * chroma_height;
        let (mut u, mut v) = (vec![0_i16; chroma_samples], vec![0_i16; chroma_samples]);
        for (line, (u, v)) in u.chunks_exact_mut(chroma_width).zip(v.chunks_exact_mut(chroma_width)).enumerate() {
            convert_chroma(row_of(line * 2), row_of((line * 2 + 1).min(height - 1)), u, v);
        }
        let finish = |plane: Vec<i16>| {
            let plane = if sharp { sharpen(plane, chroma_width) } else { plane };
            to_macroblocks(&plane, chroma_width, columns, rows)
        };
        Self { columns, rows, y, u: finish(u), v: finish(v) }
    }
}

/// Rounds to bytes and pads to whole macroblocks by repeating the edge.
fn to_macroblocks(plane: &[i16], width: usize, columns: usize, rows: usize) -> Vec<u8> {
    let mut padded = vec![0; columns * rows * 64];
    for (y, line) in padded.chunks_exact_mut(columns * 8).enumerate() {
        let at = (y * width).min(plane.len() - width);
        for (to, from) in line.iter_mut().zip(&plane[at..at + width]) {
            *to = ((from + FRACTION / 2) / FRACTION).clamp(0, 255) as u8;
        }
        repeat_last(line, width);
    }
    padded
}

fn convert_luma(rgb: &[u8], line: &mut [u8]) {
    let (pixels, _) = rgb.as_chunks::<3>();
    for (y, [r, g, b]) in line.iter_mut().zip(pixels) {
        let sum = 16_839 * u32::from(*r) + 33_059 * u32::from(*g) + 6_420 * u32::from(*b);
        *y = ((sum + (16 << 16) + (1 << 15)) >> 16) as u8;
    }
    repeat_last(line, pixels.len());
}

/// Converts two rows of pixels to one row of chroma, in units of `1 / FRACTION`.
fn convert_chroma(above: &[u8], below: &[u8], u: &mut [i16], v: &mut [i16]) {
    let tables = &*TABLES;
    let mut put = |n: usize, [a, b, c, d]: [[u8; 3]; 4]| {
        let mean = |channel: usize| tables.mean([a[channel], b[channel], c[channel], d[channel]]);
        let (r, g, b) = (mean(0), mean(1), mean(2));
        u[n] = to_fixed_point(-9_719 * r - 19_081 * g + 28_800 * b);
        v[n] = to_fixed_point(28_800 * r - 24_116 * g - 4_684 * b);
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

fn to_fixed_point(chroma: i32) -> i16 {
    const SHIFT: u32 = 18 - FRACTION.ilog2();
    ((chroma + (128 << 18) + (1 << (SHIFT - 1))) >> SHIFT) as i16
}

fn repeat_last(line: &mut [u8], pixels: usize) {
    let last = line[pixels - 1];
    line[pixels..].fill(last);
}

/// Gamma tables: colours are averaged in nearly linear light, because a mean of stored values would darken edges between bright
/// colours.
struct GammaTables {
    linear: [u16; 256],
    /// Four times the stored value, by the sum of four linear values.
    stored: Vec<u16>,
}

impl GammaTables {
    fn mean(&self, values: [u8; 4]) -> i32 {
        let sum: usize = values.iter().map(|value| usize::from(self.linear[usize::from(*value)])).sum();
        i32::from(self.stored[sum])
    }
}

static TABLES: LazyLock<GammaTables> = LazyLock::new(|| {
    const GAMMA: f64 = 0.8;
    const FULL: f64 = 4095.0;
    let linear = std::array::from_fn(|value| ((value as f64 / 255.0).powf(GAMMA) * FULL + 0.5) as u16);
    let stored = |sum: usize| (4.0 * 255.0 * (sum as f64 / (4.0 * FULL)).powf(1.0 / GAMMA) + 0.5) as u16;
    GammaTables { linear, stored: (0..=4 * 4095).map(stored).collect() }
});
