//! A first look at the whole picture: where errors show, and where they hide.

use wide::i16x8;

use crate::{
    lanes::{Lanes, forward},
    macroblock::{Source, surroundings},
    predict::{CHROMA, LUMA, large},
    quantizer::Character,
    yuv::Planes,
};

/// What the first look found.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// Which segment each macroblock belongs to.
    pub(crate) map: Vec<u8>,
    pub(crate) segments: Vec<Character>,
    /// How easily colour can be coded.
    pub(crate) colour_ease: i32,
}

const SEGMENTS: usize = 4;
const HARDEST: usize = 255;

impl Analysis {
    pub(crate) fn of(planes: &Planes) -> Self {
        let count = planes.columns * planes.rows;
        let mut hardness = Vec::with_capacity(count);
        let mut colour_ease = 0;
        for row in 0..planes.rows {
            for column in 0..planes.columns {
                let (luma, chroma) = ease(planes, column, row);
                colour_ease += i64::from(chroma);
                hardness.push((HARDEST as i32 - ((3 * luma + chroma + 2) >> 2)).clamp(0, HARDEST as i32) as u8);
            }
        }
        let (centres, nearest, mean) = cluster(&hardness);
        let map = hardness.iter().map(|hardness| nearest[usize::from(*hardness)]).collect();
        let (low, high) = centres.iter().fold((i32::MAX, i32::MIN), |(low, high), c| (low.min(*c), high.max(*c)));
        let range = (high - low).max(1);
        let character = |centre: i32| Character {
            masking: (255 * (centre - mean) / range).clamp(-127, 127),
            busyness: (255 * (centre - low) / range).clamp(0, 255),
        };
        let segments = centres.into_iter().map(character).collect();
        Self { map, segments, colour_ease: (colour_ease / count as i64) as i32 }
    }
}

/// How easily a macroblock's brightness and colour can be coded: many small coefficients and no large ones.
fn ease(planes: &Planes, column: usize, row: usize) -> (i32, i32) {
    let source = Source::read(planes, column, row);
    let (luma, chroma) = surroundings(planes, column, row);
    let halves = [large([&luma, &luma], &LUMA[0]), large([&luma, &luma], &LUMA[1])];
    let best = |mode: usize| {
        let coefficients = |half: usize| forward(&source.luma[half], &halves[half][mode]);
        Histogram::of([coefficients(0), coefficients(1)]).ease()
    };
    let guesses = large([&chroma[0], &chroma[1]], &CHROMA);
    let best_colour = |mode: usize| Histogram::of([forward(&source.chroma, &guesses[mode])]).ease();
    (best(0).max(best(1)), best_colour(0).max(best_colour(1)))
}

/// How many coefficients are of which size, as far as anybody asks.
struct Histogram {
    largest: i16x8,
    /// Of the smallest sizes, from which the most frequent one is all but sure to be.
    counts: [i16x8; 4],
}

impl Histogram {
    fn of<const N: usize>(blocks: [Lanes; N]) -> Self {
        let mut histogram = Self { largest: i16x8::ZERO, counts: [i16x8::ZERO; 4] };
        for lane in blocks.iter().flatten() {
            let size = (lane.abs() >> 3_i32).min(i16x8::splat(31));
            histogram.largest = histogram.largest.max(size);
            for (size_counted, count) in histogram.counts.iter_mut().enumerate() {
                // Minus one for true.
                *count -= size.simd_eq(i16x8::splat(size_counted as i16));
            }
        }
        histogram
    }

    fn ease(&self) -> i32 {
        let sum = |counts: &i16x8| counts.to_array().iter().map(|count| i32::from(*count)).sum::<i32>();
        let most = self.counts.iter().map(sum).max().unwrap_or_default();
        let last = i32::from(self.largest.reduce_max()).max(1);
        if most > 1 { 510 * last / most } else { 0 }
    }
}

/// Centres, the nearest centre of each hardness, and the mean of all.
fn cluster(hardness: &[u8]) -> (Vec<i32>, [u8; HARDEST + 1], i32) {
    let mut counts = [0_i64; HARDEST + 1];
    hardness.iter().for_each(|hardness| counts[usize::from(*hardness)] += 1);
    let low = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let high = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let mut centres: Vec<i32> =
        (0..SEGMENTS).map(|n| (low + (2 * n + 1) * (high - low) / (2 * SEGMENTS)) as i32).collect();
    let mut nearest = [0; HARDEST + 1];
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
