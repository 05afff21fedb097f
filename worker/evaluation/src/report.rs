//! The result of an evaluation.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{ClusteringScore, VerificationMetrics};

/// The result of an evaluation on labelled photos.
#[derive(Debug, Clone)]
pub struct EvaluationReport {
    /// Photos evaluated.
    pub photos: usize,
    /// Photos in which a face was detected.
    pub detected: usize,
    /// Persons according to the labels.
    pub labelled_persons: usize,
    /// 1:1 verification.
    pub verification: VerificationMetrics,
    /// The score of each order of the photos.
    pub scores: Vec<ClusteringScore>,
    /// Photos that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl EvaluationReport {
    /// Returns the mean over all orders.
    pub fn mean(&self) -> ClusteringScore {
        ClusteringScore::mean(&self.scores)
    }

    /// Returns the fraction of the photos in which a face was detected.
    pub fn detection_rate(&self) -> f64 {
        self.detected as f64 / self.photos.max(1) as f64
    }

    /// Returns the report for scripts.
    pub fn to_json(&self) -> Value {
        let mean = self.mean();
        let unreadable =
            self.unreadable.iter().map(|(path, why)| json!({ "path": path.display().to_string(), "reason": why }));
        json!({
            "photos": self.photos,
            "detection_rate": self.detection_rate(),
            "tar_at_far_1pct": self.verification.tar_at_far_1pct,
            "tar_at_far_01pct": self.verification.tar_at_far_01pct,
            "best_threshold": self.verification.best_threshold,
            "best_accuracy": self.verification.best_accuracy,
            "precision": mean.precision,
            "recall": mean.recall,
            "persons_made": mean.persons,
            "persons_true": self.labelled_persons,
            "corrections_per_100": mean.corrections_per_100,
            "unidentified": mean.unidentified,
            "orders": self.scores.iter().map(order_to_json).collect::<Vec<_>>(),
            "unreadable": unreadable.collect::<Vec<_>>(),
        })
    }
}

fn order_to_json(score: &ClusteringScore) -> Value {
    json!({
        "precision": score.precision,
        "recall": score.recall,
        "persons_made": score.persons,
        "corrections_per_100": score.corrections_per_100,
        "unidentified": score.unidentified,
    })
}
