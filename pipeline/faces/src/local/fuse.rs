//! Fusion of several models' embeddings into one signature.

/// The embedding of one model.
pub struct WeightedEmbedding<'a> {
    /// The vector, of any length.
    pub vector: &'a [f32],
    /// The mean of all faces, subtracted where it is known.
    pub mean: Option<&'a [f32]>,
    /// The weight in the fused vector.
    pub weight: f32,
}

/// Concatenates the embeddings to one unit vector whose cosine similarity is the weighted mean of the models' similarities.
pub fn fuse(embeddings: &[WeightedEmbedding<'_>]) -> Vec<f32> {
    let weighted = |embedding: &WeightedEmbedding<'_>| {
        let weight = embedding.weight;
        normalize(subtract_mean(embedding)).into_iter().map(move |x| x * weight)
    };
    normalize(embeddings.iter().flat_map(weighted).collect())
}

/// Scales the vector to unit length (L2); a zero vector is unchanged.
pub fn normalize(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// Returns the unit vector of an embedding minus the mean.
fn subtract_mean(embedding: &WeightedEmbedding<'_>) -> Vec<f32> {
    let vector = normalize(embedding.vector.to_vec());
    match embedding.mean {
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
            fuse(&[
                WeightedEmbedding { vector: a, mean: None, weight: 2.0 },
                WeightedEmbedding { vector: b, mean: None, weight: 1.0 },
            ])
        };
        let (one, other) = (fused(&[3.0, 0.0], &[0.0, 9.0]), fused(&[3.0, 4.0], &[0.0, 1.0]));
        let cosine: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        // The first cosine is 0.6 with weight 2 squared, the second is 1 with weight 1.
        assert!((cosine - (4.0 * 0.6 + 1.0) / 5.0).abs() < 1e-6, "{cosine}");
    }

    #[test]
    fn the_mean_of_all_faces_does_not_count() {
        let fused = fuse(&[WeightedEmbedding { vector: &[6.0, 8.0], mean: Some(&[0.6, 0.0]), weight: 2.0 }]);
        assert!(fused[0].abs() < 1e-6 && (fused[1] - 1.0).abs() < 1e-6, "{fused:?}");
    }

    #[test]
    fn a_zero_vector_stays_zero() {
        assert_eq!(fuse(&[WeightedEmbedding { vector: &[0.0, 0.0], mean: None, weight: 1.0 }]), [0.0, 0.0]);
    }
}
