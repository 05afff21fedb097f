//! Colour that is still the colour after a decoder has enlarged it.
//!
//! Decoders make four pixels of a sample, each of nine parts of it and three, three and one of its neighbours. The mean of
//! the four is then no longer the sample: in both directions it is six eighths of it, and one of each neighbour. What is
//! missing is added, so that edges between colours stay where they are. To add once more what is then missing brings more
//! bytes than likeness.

/// Steps between two values of a byte.
pub(crate) const FINER: i16 = 32;

/// The samples, row by row, so that their enlarged picture is nearer to them.
pub(crate) fn sharpen(wanted: Vec<i16>, across: usize) -> Vec<i16> {
    let mut samples = seen(&wanted, across);
    for (sample, wanted) in samples.iter_mut().zip(wanted) {
        *sample = 2 * wanted - *sample;
    }
    samples
}

/// What a decoder will show, on average, where each sample is.
fn seen(samples: &[i16], across: usize) -> Vec<i16> {
    let last_row = samples.len() / across - 1;
    let row = |y: usize| &samples[y * across..][..across];
    let mut seen = vec![0; samples.len()];
    let mut blurred_down = vec![0; across];
    for (y, line) in seen.chunks_exact_mut(across).enumerate() {
        let (above, here, below) = (row(y.saturating_sub(1)), row(y), row((y + 1).min(last_row)));
        for (x, blurred) in blurred_down.iter_mut().enumerate() {
            *blurred = blur(above[x], here[x], below[x]);
        }
        for (x, seen) in line.iter_mut().enumerate().take(across - 1).skip(1) {
            *seen = blur(blurred_down[x - 1], blurred_down[x], blurred_down[x + 1]);
        }
        for x in [0, across - 1] {
            let [left, right] = [x.saturating_sub(1), (x + 1).min(across - 1)];
            line[x] = blur(blurred_down[left], blurred_down[x], blurred_down[right]);
        }
    }
    seen
}

/// Samples are at most a few times 256 steps: six of them, and two more, fit.
#[inline(always)]
fn blur(before: i16, here: i16, after: i16) -> i16 {
    let sum = i32::from(before) + 6 * i32::from(here) + i32::from(after);
    ((sum + 4) >> 3) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_colours_stay() {
        for across in [1, 2, 5] {
            assert_eq!(sharpen(vec![77 * FINER; across * 3], across), vec![77 * FINER; across * 3]);
        }
    }

    #[test]
    fn what_is_seen_comes_nearer_to_what_is_wanted() {
        let mut random = fastrand::Rng::with_seed(3);
        let wanted: Vec<i16> =
            (0..20 * 30).map(|n| if n / 7 % 2 == 0 { 60 } else { 180 + random.i16(0..9) } * FINER).collect();
        let error = |samples: &[i16]| -> i64 {
            seen(samples, 20).iter().zip(&wanted).map(|(a, b)| i64::from(a - b).pow(2)).sum()
        };
        let sharp = sharpen(wanted.clone(), 20);
        assert!(error(&sharp) * 3 < error(&wanted), "{} of {}", error(&sharp), error(&wanted));
    }
}
