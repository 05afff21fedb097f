//! Analysis of the whole image: assigns macroblocks to segments by their complexity.

use wide::i16x8;

use crate::{
    planes::Planes,
    predict::{CHROMA, LUMA, predict_blocks},
    quantizer::Susceptibility,
    simd::{Blocks8, forward},
    source::{SourceMacroblock, source_neighbours},
};

/// The result of the analysis.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The segment of each macroblock.
    pub(crate) map: Vec<u8>,
    pub(crate) segments: Vec<Susceptibility>,
    /// Mean compressibility of chroma.
    pub(crate) chroma_compressibility: i32,
}

const SEGMENTS: usize = 4;
const MAX_DIFFICULTY: usize = 255;

impl Analysis {
    pub(crate) fn of(planes: &Planes) -> Self {
        let count = planes.columns * planes.rows;
        let mut difficulty = Vec::with_capacity(count);
        let mut chroma_compressibility = 0;
        for row in 0..planes.rows {
            for column in 0..planes.columns {
                let (luma, chroma) = compressibility(planes, column, row);
                chroma_compressibility += i64::from(chroma);
                difficulty.push(
                    (MAX_DIFFICULTY as i32 - ((3 * luma + chroma + 2) >> 2)).clamp(0, MAX_DIFFICULTY as i32) as u8,
                );
            }
        }
        let (centres, nearest, mean) = cluster(&difficulty);
        let map = difficulty.iter().map(|difficulty| nearest[usize::from(*difficulty)]).collect();
        let (low, high) = centres.iter().fold((i32::MAX, i32::MIN), |(low, high), c| (low.min(*c), high.max(*c)));
        let range = (high - low).max(1);
        let susceptibility = |centre: i32| Susceptibility {
            quantization: (255 * (centre - mean) / range).clamp(-127, 127),
            filter: (255 * (centre - low) / range).clamp(0, 255),
        };
        let segments = centres.into_iter().map(susceptibility).collect();
        Self { map, segments, chroma_compressibility: (chroma_compressibility / count as i64) as i32 }
    }
}

/// Returns the compressibility of a macroblock's luma and chroma: many small coefficients and no large ones (alpha of libwebp).
fn compressibility(planes: &Planes, column: usize, row: usize) -> (i32, i32) {
    let source = SourceMacroblock::read(planes, column, row);
    let (luma, chroma) = source_neighbours(planes, column, row);
    let halves = [predict_blocks([&luma, &luma], &LUMA[0]), predict_blocks([&luma, &luma], &LUMA[1])];
    let best = |mode: usize| {
        let coefficients = |half: usize| forward(&source.luma[half], &halves[half][mode]);
        Histogram::of([coefficients(0), coefficients(1)]).compressibility()
    };
    let predictions = predict_blocks([&chroma[0], &chroma[1]], &CHROMA);
    let best_chroma = |mode: usize| Histogram::of([forward(&source.chroma, &predictions[mode])]).compressibility();
    (best(0).max(best(1)), best_chroma(0).max(best_chroma(1)))
}

/// A histogram of coefficient sizes, reduced to what is needed.
struct Histogram {
    largest: i16x8,
    /// Counts of the smallest sizes, which almost always include the most frequent one.
    counts: [i16x8; 4],
}

impl Histogram {
    fn of<const N: usize>(blocks: [Blocks8; N]) -> Self {
        let mut histogram = Self { largest: i16x8::ZERO, counts: [i16x8::ZERO; 4] };
        for lane in blocks.iter().flatten() {
            let size = (lane.abs() >> 3_i32).min(i16x8::splat(31));
            histogram.largest = histogram.largest.max(size);
            for (size_counted, count) in histogram.counts.iter_mut().enumerate() {
                // True is -1.
                *count -= size.simd_eq(i16x8::splat(size_counted as i16));
            }
        }
        histogram
    }

    fn compressibility(&self) -> i32 {
        let sum = |counts: &i16x8| counts.to_array().iter().map(|count| i32::from(*count)).sum::<i32>();
        let most = self.counts.iter().map(sum).max().unwrap_or_default();
        let last = i32::from(self.largest.reduce_max()).max(1);
        if most > 1 { 510 * last / most } else { 0 }
    }
}

/// Clusters macroblocks by k-means in one dimension (`AssignSegments` of libwebp). Returns the centres, the nearest centre of each
/// difficulty, and the weighted mean.
fn cluster(difficulty: &[u8]) -> (Vec<i32>, [u8; MAX_DIFFICULTY + 1], i32) {
    let mut counts = [0_i64; MAX_DIFFICULTY + 1];
    difficulty.iter().for_each(|difficulty| counts[usize::from(*difficulty)] += 1);
    let low = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let high = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let mut centres: Vec<i32> =
        (0..SEGMENTS).map(|n| (low + (2 * n + 1) * (high - low) / (2 * SEGMENTS)) as i32).collect();
    let mut nearest = [0; MAX_DIFFICULTY + 1];
    let mut mean = 0;
    for _ in 0..6 {
        let mut sums = [(0_i64, 0_i64); SEGMENTS];
        let mut n = 0;
        for value in low..=high {
            let distance = |n: usize| (value as i32 - centres[n]).abs();
            while n + 1 < SEGMENTS && distance(n + 1) < distance(n) {
                n += 1;
            }
            nearest[value] = n as u8;
            sums[n].0 += value as i64 * counts[value];
            sums[n].1 += counts[value];
        }
        let mut moved = 0;
        for (centre, (sum, count)) in centres.iter_mut().zip(sums) {
            if count > 0 {
                let new = ((sum + count / 2) / count) as i32;
                moved += (*centre - new).abs();
                *centre = new;
            }
        }
        let (sum, count) =
            centres.iter().zip(sums).fold((0, 0), |(s, c), (centre, (_, n))| (s + i64::from(*centre) * n, c + n));
        mean = ((sum + count / 2) / count.max(1)) as i32;
        if moved < 5 {
            break;
        }
    }
    (centres, nearest, mean)
}
