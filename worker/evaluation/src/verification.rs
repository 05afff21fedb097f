//! 1:1 verification: whether two faces show the same person, measured on all pairs.

use sparks_domain::{Signature, Template};

/// How well similarity alone separates genuine pairs (of one person) from impostor pairs (of two persons).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerificationMetrics {
    /// True accept rate at a false accept rate of 1%.
    pub tar_at_far_1pct: f64,
    /// True accept rate at a false accept rate of 0.1%.
    pub tar_at_far_01pct: f64,
    /// The similarity threshold with the highest balanced accuracy.
    pub best_threshold: f64,
    /// The balanced accuracy at that threshold.
    pub best_accuracy: f64,
}

impl VerificationMetrics {
    /// Measures all pairs of these faces, each given with its label.
    pub fn measure(faces: &[(usize, &Signature)]) -> Self {
        let (mut genuine, mut impostor) = (Vec::new(), Vec::new());
        let templates: Vec<Template<'_>> = faces.iter().map(|(_, face)| Template::from(*face)).collect();
        for (n, (label, _)) in faces.iter().enumerate() {
            for (other, (other_label, _)) in faces[..n].iter().enumerate() {
                let similarity = templates[n].similarity(templates[other]);
                if label == other_label { &mut genuine } else { &mut impostor }.push(similarity);
            }
        }
        genuine.sort_unstable_by(f32::total_cmp);
        impostor.sort_unstable_by(f32::total_cmp);
        let (best_threshold, best_accuracy) = best_threshold(&genuine, &impostor);
        Self {
            tar_at_far_1pct: accept_rate(&genuine, threshold_at_far(&impostor, 0.01)),
            tar_at_far_01pct: accept_rate(&genuine, threshold_at_far(&impostor, 0.001)),
            best_threshold,
            best_accuracy,
        }
    }
}

/// Returns the threshold above which this fraction of the impostor pairs lies.
fn threshold_at_far(impostor: &[f32], false_accept_rate: f64) -> f32 {
    let above = (impostor.len() as f64 * false_accept_rate) as usize;
    impostor.len().checked_sub(above + 1).map_or(f32::NEG_INFINITY, |index| impostor[index])
}

/// Returns the fraction of the sorted similarities above the threshold.
fn accept_rate(sorted: &[f32], threshold: f32) -> f64 {
    let below = sorted.partition_point(|similarity| *similarity <= threshold);
    if sorted.is_empty() { 1.0 } else { (sorted.len() - below) as f64 / sorted.len() as f64 }
}

/// Returns the threshold with the highest balanced accuracy, and that accuracy.
fn best_threshold(genuine: &[f32], impostor: &[f32]) -> (f64, f64) {
    let accuracy = |threshold: f32| (accept_rate(genuine, threshold) + 1.0 - accept_rate(impostor, threshold)) / 2.0;
    let all = genuine.iter().map(|threshold| (*threshold, accuracy(*threshold)));
    let best = all.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((0.0, 1.0));
    (f64::from(best.0), best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separable_pairs_are_all_accepted() {
        let at = |angle: f32| Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction");
        let (a, b, c, d) = (at(0.0), at(0.1), at(1.4), at(1.5));
        let separable = VerificationMetrics::measure(&[(0, &a), (0, &b), (1, &c), (1, &d)]);
        assert_eq!((separable.tar_at_far_1pct, separable.tar_at_far_01pct), (1.0, 1.0));
        let mixed = VerificationMetrics::measure(&[(0, &a), (1, &b), (0, &c), (1, &d)]);
        assert_eq!(mixed.tar_at_far_1pct, 0.0);
    }
}
