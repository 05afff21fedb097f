//! Whether two photos show the same person, asked of every pair.

use sparks_domain::Signature;

/// How well similarity alone tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verification {
    /// The share of right pairs accepted where 1% of the wrong ones are.
    pub tar_at_far_1pct: f64,
    /// The share of right pairs accepted where 0.1% of the wrong ones are.
    pub tar_at_far_01pct: f64,
    /// The similarity that tells best, right and wrong pairs counting the same.
    pub best_threshold: f64,
    /// The share it tells rightly.
    pub best_accuracy: f64,
}

impl Verification {
    /// Over all pairs of these faces, each with the number of its person.
    pub fn of(faces: &[(usize, &Signature)]) -> Self {
        let (mut same, mut other) = (Vec::new(), Vec::new());
        for (n, (person, face)) in faces.iter().enumerate() {
            for (another, it) in &faces[..n] {
                if person == another { &mut same } else { &mut other }.push(face.similarity(it));
            }
        }
        same.sort_unstable_by(f32::total_cmp);
        other.sort_unstable_by(f32::total_cmp);
        let (best_threshold, best_accuracy) = best(&same, &other);
        Self {
            tar_at_far_1pct: accepted(&same, wrong_at(&other, 0.01)),
            tar_at_far_01pct: accepted(&same, wrong_at(&other, 0.001)),
            best_threshold,
            best_accuracy,
        }
    }
}

/// The similarity above which this share of the wrong pairs is.
fn wrong_at(other: &[f32], share: f64) -> f32 {
    let above = (other.len() as f64 * share) as usize;
    other.len().checked_sub(above + 1).map_or(f32::NEG_INFINITY, |place| other[place])
}

/// The share of pairs above the similarity.
fn accepted(sorted: &[f32], threshold: f32) -> f64 {
    let below = sorted.partition_point(|similarity| *similarity <= threshold);
    if sorted.is_empty() { 1.0 } else { (sorted.len() - below) as f64 / sorted.len() as f64 }
}

fn best(same: &[f32], other: &[f32]) -> (f64, f64) {
    let accuracy = |threshold: f32| (accepted(same, threshold) + 1.0 - accepted(other, threshold)) / 2.0;
    let all = same.iter().map(|threshold| (*threshold, accuracy(*threshold)));
    let best = all.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((0.0, 1.0));
    (f64::from(best.0), best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_part_are_all_told() {
        let at = |angle: f32| Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction");
        let (a, b, c, d) = (at(0.0), at(0.1), at(1.4), at(1.5));
        let told = Verification::of(&[(0, &a), (0, &b), (1, &c), (1, &d)]);
        assert_eq!((told.tar_at_far_1pct, told.tar_at_far_01pct), (1.0, 1.0));
        let mixed = Verification::of(&[(0, &a), (1, &b), (0, &c), (1, &d)]);
        assert_eq!(mixed.tar_at_far_1pct, 0.0);
    }
}
