//! One signature of what several models say.

/// What one model says of a face.
pub struct Part<'a> {
    /// Its vector, of any length.
    pub vector: &'a [f32],
    /// What faces have in common, and which therefore tells nothing; subtracted where it is known.
    pub mean: Option<&'a [f32]>,
    /// How much it counts.
    pub weight: f32,
}

/// The parts as one unit vector, so that one cosine does what the weighted cosines of the parts would do.
pub fn fuse(parts: &[Part<'_>]) -> Vec<f32> {
    unit(parts.iter().flat_map(|part| unit(centred(part)).into_iter().map(|x| x * part.weight)).collect())
}

/// The vector as long as one; what has no direction stays as it is.
pub fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// The unit vector of a part without the mean.
fn centred(part: &Part<'_>) -> Vec<f32> {
    let vector = unit(part.vector.to_vec());
    match part.mean {
        Some(mean) => vector.iter().zip(mean).map(|(x, mean)| x - mean).collect(),
        None => vector,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_is_the_weighted_mean_of_the_cosines() {
        let fused = |a: &[f32], b: &[f32]| {
            fuse(&[Part { vector: a, mean: None, weight: 2.0 }, Part { vector: b, mean: None, weight: 1.0 }])
        };
        let (one, other) = (fused(&[3.0, 0.0], &[0.0, 9.0]), fused(&[3.0, 4.0], &[0.0, 1.0]));
        let cosine: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        // dlib's cosine is 0.6 and counts 2 squared, the other is 1 and counts once.
        assert!((cosine - (4.0 * 0.6 + 1.0) / 5.0).abs() < 1e-6, "{cosine}");
    }

    #[test]
    fn what_faces_have_in_common_does_not_count() {
        let fused = fuse(&[Part { vector: &[6.0, 8.0], mean: Some(&[0.6, 0.0]), weight: 2.0 }]);
        assert!(fused[0].abs() < 1e-6 && (fused[1] - 1.0).abs() < 1e-6, "{fused:?}");
    }

    #[test]
    fn nothing_stays_nothing() {
        assert_eq!(fuse(&[Part { vector: &[0.0, 0.0], mean: None, weight: 1.0 }]), [0.0, 0.0]);
    }
}
