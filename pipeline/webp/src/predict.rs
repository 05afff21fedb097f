//! Intra prediction (RFC 6386, section 12).

use wide::i16x8;

use crate::simd::Blocks8;

/// Predicts a 4x4 block by all ten modes, in the order of the specification. `edge` surrounds the block: the left side from the
/// bottom, the corner, the eight pixels above.
pub(crate) fn predict_4x4(edge: &[u8; 13]) -> [[u8; 16]; 10] {
    // Each pixel with its neighbours; at both ends it is its own neighbour.
    let mut wide = [0_u16; 18];
    for n in 0..13 {
        wide[n + 1] = edge[n].into();
    }
    (wide[0], wide[14]) = (wide[1], wide[13]);
    let (mut two, mut three) = ([0_u8; 16], [0_u8; 16]);
    for n in 0..16 {
        two[n] = ((wide[n + 1] + wide[(n + 2).min(17)] + 1) >> 1) as u8;
        three[n] = ((wide[n] + 2 * wide[n + 1] + wide[(n + 2).min(17)] + 2) >> 2) as u8;
    }
    let mean = ((wide[1..5].iter().sum::<u16>() + wide[6..10].iter().sum::<u16>() + 4) >> 3) as u8;
    let (t, h, last) = (&three, &two, edge[0]);
    let mut predictions = [[0; 16]; 10];
    predictions[0] = [mean; 16];
    for y in 0..4 {
        let mut put = |mode: usize, row: [u8; 4]| predictions[mode][y * 4..y * 4 + 4].copy_from_slice(&row);
        let step = i16::from(edge[3 - y]) - i16::from(edge[4]);
        let moved = |n: usize| (i16::from(edge[5 + n]) + step).clamp(0, 255) as u8;
        put(1, [moved(0), moved(1), moved(2), moved(3)]);
        put(2, four(t, 5));
        put(3, [t[3 - y]; 4]);
        put(4, four(t, 4 - y));
        put(6, four(t, 6 + y));
    }
    put_rows(&mut predictions[5], [four(h, 4), four(t, 4), [t[3], h[4], h[5], h[6]], [t[2], t[4], t[5], t[6]]]);
    put_rows(&mut predictions[7], [four(h, 5), four(t, 6), [h[6], h[7], h[8], t[10]], [t[7], t[8], t[9], t[11]]]);
    put_rows(
        &mut predictions[8],
        [[h[3], t[4], t[5], t[6]], [h[2], t[3], h[3], t[4]], [h[1], t[2], h[2], t[3]], [h[0], t[1], h[1], t[2]]],
    );
    put_rows(
        &mut predictions[9],
        [[h[2], t[2], h[1], t[1]], [h[1], t[1], h[0], t[0]], [h[0], t[0], last, last], [last; 4]],
    );
    predictions
}

#[inline]
fn four(values: &[u8; 16], from: usize) -> [u8; 4] {
    [values[from], values[from + 1], values[from + 2], values[from + 3]]
}

#[inline]
fn put_rows(prediction: &mut [u8; 16], rows: [[u8; 4]; 4]) {
    for (to, row) in prediction.chunks_exact_mut(4).zip(rows) {
        to.copy_from_slice(&row);
    }
}

/// The pixels around a macroblock's plane of `N` pixels a side; `None` outside the image.
pub(crate) struct Neighbours<const N: usize> {
    pub(crate) above: Option<[u8; N]>,
    pub(crate) left: Option<[u8; N]>,
    pub(crate) corner: u8,
}

impl<const N: usize> Neighbours<N> {
    /// Returns the pixels, with the values of the specification outside the image.
    pub(crate) fn filled(&self) -> ([u8; N], [u8; N]) {
        (self.above.unwrap_or([127; N]), self.left.unwrap_or([129; N]))
    }

    fn mean(&self) -> u8 {
        let sum = |side: &[u8; N]| side.iter().map(|pixel| u32::from(*pixel)).sum::<u32>();
        let n = N as u32;
        match (&self.above, &self.left) {
            (Some(above), Some(left)) => ((sum(above) + sum(left) + n) / (2 * n)) as u8,
            (Some(side), None) | (None, Some(side)) => ((sum(side) + n / 2) / n) as u8,
            (None, None) => 128,
        }
    }
}

/// The position of the eight blocks of a vector, in pixels, and which of two planes they belong to.
pub(crate) type BlockLayout = [(usize, usize, usize); 8];

/// The upper and the lower half of a macroblock's luma.
pub(crate) const LUMA: [BlockLayout; 2] = {
    let mut halves = [[(0, 0, 0); 8]; 2];
    let mut block = 0;
    while block < 16 {
        halves[block / 8][block % 8] = (block % 4 * 4, block / 4 * 4, 0);
        block += 1;
    }
    halves
};

/// Both chroma planes.
pub(crate) const CHROMA: BlockLayout =
    [(0, 0, 0), (4, 0, 0), (0, 4, 0), (4, 4, 0), (0, 0, 1), (4, 0, 1), (0, 4, 1), (4, 4, 1)];

/// Predicts eight blocks at once by all four modes, in the order DC, TrueMotion, vertical, horizontal.
pub(crate) fn predict_blocks<const N: usize>(neighbours: [&Neighbours<N>; 2], layout: &BlockLayout) -> [Blocks8; 4] {
    let filled = [neighbours[0].filled(), neighbours[1].filled()];
    let means = [neighbours[0].mean(), neighbours[1].mean()];
    let (mut above, mut left) = ([[0_i16; 8]; 4], [[0_i16; 8]; 4]);
    let (mut corner, mut mean) = ([0_i16; 8], [0_i16; 8]);
    for (lane, (x, y, plane)) in layout.iter().enumerate() {
        for n in 0..4 {
            above[n][lane] = filled[*plane].0[x + n].into();
            left[n][lane] = filled[*plane].1[y + n].into();
        }
        corner[lane] = neighbours[*plane].corner.into();
        mean[lane] = means[*plane].into();
    }
    let (corner, black, white) = (i16x8::new(corner), i16x8::ZERO, i16x8::splat(255));
    let mut predictions = [[i16x8::new(mean); 16]; 4];
    for n in 0..16 {
        let (above, left) = (i16x8::new(above[n % 4]), i16x8::new(left[n / 4]));
        predictions[1][n] = (above + left - corner).max(black).min(white);
        predictions[2][n] = above;
        predictions[3][n] = left;
    }
    predictions
}
