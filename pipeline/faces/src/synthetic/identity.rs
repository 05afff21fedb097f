//! What an identity looks like: a direction in space.

use fastrand::Rng;

/// One for each cell of a marker.
pub const DIMENSIONS: usize = 144;

/// What this identity looks like. The mean of the components is 0 and their variance 1, so that the cosine between two
/// strangers spreads around 0 with a deviation of 1/12.
pub fn identity_vector(seed: u64, identity: usize) -> Vec<f32> {
    let mut rng = stream(seed, 0x0069_6465_6e74, identity as u64);
    standardised((0..DIMENSIONS).map(|_| gaussian(&mut rng)).collect())
}

/// The same look on another day. Two such looks have a cosine of about `1 / (1 + noise²)`.
pub fn with_noise(vector: &[f32], noise: f32, seed: u64) -> Vec<f32> {
    let mut rng = stream(seed, 0x006e_6f69_7365, 0);
    vector.iter().map(|x| x + noise * gaussian(&mut rng)).collect()
}

/// Mean 0 and variance 1; all zero where there is no variance.
pub(super) fn standardised(mut vector: Vec<f32>) -> Vec<f32> {
    let count = vector.len().max(1) as f32;
    let mean = vector.iter().sum::<f32>() / count;
    let deviation = (vector.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count).sqrt();
    vector.iter_mut().for_each(|x| *x = if deviation > f32::EPSILON { (*x - mean) / deviation } else { 0.0 });
    vector
}

/// Independent randomness for each purpose and number, so that nothing has to be made in order.
pub(super) fn stream(seed: u64, purpose: u64, number: u64) -> Rng {
    Rng::with_seed(mix(mix(mix(seed) ^ purpose) ^ number))
}

/// The finisher of SplitMix64: neighbouring numbers become unrelated ones.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Nearly gaussian. A sum of uniforms and no logarithm: additions give the same bits on every machine.
fn gaussian(rng: &mut Rng) -> f32 {
    let sum = rng.f32() + rng.f32() + rng.f32() + rng.f32();
    (sum - 2.0) * 1.732_050_8
}
