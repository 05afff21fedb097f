//! Synthetic identities: random directions in the embedding space.

use fastrand::Rng;

/// One dimension for each cell of a marker.
pub const DIMENSIONS: usize = 144;

/// Returns the vector of an identity. The components have mean 0 and variance 1, so that the cosine similarity of two identities
/// has mean 0 and standard deviation 1/12.
pub fn identity_vector(seed: u64, identity: usize) -> Vec<f32> {
    let mut rng = stream(seed, 0x0069_6465_6e74, identity as u64);
    standardised((0..DIMENSIONS).map(|_| gaussian(&mut rng)).collect())
}

/// Returns the vector of another photo of the same identity. Two of them have a cosine similarity of about `1 / (1 + noise²)`.
pub fn with_noise(vector: &[f32], noise: f32, seed: u64) -> Vec<f32> {
    let mut rng = stream(seed, 0x006e_6f69_7365, 0);
    vector.iter().map(|x| x + noise * gaussian(&mut rng)).collect()
}

/// Standardises to mean 0 and variance 1; all zero if there is no variance.
pub(super) fn standardised(mut vector: Vec<f32>) -> Vec<f32> {
    let count = vector.len().max(1) as f32;
    let mean = vector.iter().sum::<f32>() / count;
    let deviation = (vector.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count).sqrt();
    vector.iter_mut().for_each(|x| *x = if deviation > f32::EPSILON { (*x - mean) / deviation } else { 0.0 });
    vector
}

/// Returns an independent random stream for each purpose and number, so that nothing depends on the order of generation.
pub(super) fn stream(seed: u64, purpose: u64, number: u64) -> Rng {
    Rng::with_seed(mix(mix(mix(seed) ^ purpose) ^ number))
}

/// The finalizer of SplitMix64: neighbouring numbers become unrelated.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a nearly Gaussian number. A sum of uniform ones without a logarithm gives the same bits on every machine.
fn gaussian(rng: &mut Rng) -> f32 {
    let sum = rng.f32() + rng.f32() + rng.f32() + rng.f32();
    (sum - 2.0) * 1.732_050_8
}
