//! Sharp YUV: chroma that is close to the original after a decoder has upsampled it.
//!
//! Decoders upsample each chroma sample to four pixels with weights 9, 3, 3 and 1 of the sample and its neighbours. The mean of
//! the four is therefore not the sample: in each direction it is 6/8 of it and 1/8 of each neighbour. The difference is added
//! back once, so that edges between colours stay in place. A second iteration costs more bytes than it gains in PSNR.

/// Fixed-point units per value of a byte.
pub(crate) const FRACTION: i16 = 32;

/// Corrects the samples, row by row, so that their upsampled image is closer to the original ones.
pub(crate) fn sharpen(wanted: Vec<i16>, width: usize) -> Vec<i16> {
    let mut samples = upsampled_mean(&wanted, width);
    for (sample, wanted) in samples.iter_mut().zip(wanted) {
        *sample = 2 * wanted - *sample;
    }
    samples
}

/// Returns the mean that a decoder's upsampling gives at the place of each sample.
fn upsampled_mean(samples: &[i16], width: usize) -> Vec<i16> {
    let last_row = samples.len() / width - 1;
    let row = |y: usize| &samples[y * width..][..width];
    let mut upsampled_mean = vec![0; samples.len()];
    let mut vertical = vec![0; width];
    for (y, line) in upsampled_mean.chunks_exact_mut(width).enumerate() {
        let (above, here, below) = (row(y.saturating_sub(1)), row(y), row((y + 1).min(last_row)));
        for (x, blurred) in vertical.iter_mut().enumerate() {
            *blurred = blur(above[x], here[x], below[x]);
        }
        for (x, upsampled_mean) in line.iter_mut().enumerate().take(width - 1).skip(1) {
            *upsampled_mean = blur(vertical[x - 1], vertical[x], vertical[x + 1]);
        }
        for x in [0, width - 1] {
            let [left, right] = [x.saturating_sub(1), (x + 1).min(width - 1)];
            line[x] = blur(vertical[left], vertical[x], vertical[right]);
        }
    }
    upsampled_mean
}

/// Samples are at most a few times 256 * `FRACTION`, so that the result fits.
#[inline(always)]
fn blur(before: i16, here: i16, after: i16) -> i16 {
    let sum = i32::from(before) + 6 * i32::from(here) + i32::from(after);
    ((sum + 4) >> 3) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_chroma_is_unchanged() {
        for width in [1, 2, 5] {
            assert_eq!(sharpen(vec![77 * FRACTION; width * 3], width), vec![77 * FRACTION; width * 3]);
        }
    }

    #[test]
    fn sharpening_reduces_the_upsampling_error() {
        let mut random = fastrand::Rng::with_seed(3);
        let wanted: Vec<i16> =
            (0..20 * 30).map(|n| if n / 7 % 2 == 0 { 60 } else { 180 + random.i16(0..9) } * FRACTION).collect();
        let error = |samples: &[i16]| -> i64 {
            upsampled_mean(samples, 20).iter().zip(&wanted).map(|(a, b)| i64::from(a - b).pow(2)).sum()
        };
        let sharp = sharpen(wanted.clone(), 20);
        assert!(error(&sharp) * 3 < error(&wanted), "{} of {}", error(&sharp), error(&wanted));
    }
}
