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
