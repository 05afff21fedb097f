//! Quality filter of faces.

use sparks_domain::DetectedFace;

/// The values of the request member `QualityFilter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QualityFilter {
    /// Accepts every face.
    None,
    /// The default limits of the worker for a new person.
    Auto,
    /// Rejects few faces.
    Low,
    /// Rejects some faces.
    Medium,
    /// Accepts only faces of high quality.
    High,
}

/// Minimum size in pixels, sharpness and confidence, and maximum head rotation.
struct QualityLimits {
    min_size: f32,
    min_sharpness: f32,
    min_confidence: f32,
    max_turn: f32,
}

impl QualityFilter {
    fn limits(self) -> Option<QualityLimits> {
        let limits = |min_size, min_sharpness, min_confidence, max_turn| {
            Some(QualityLimits { min_size, min_sharpness, min_confidence, max_turn })
        };
        match self {
            Self::None => None,
            Self::Low => limits(20.0, 0.05, 0.5, 0.9),
            Self::Auto => limits(32.0, 0.1, 0.6, 0.8),
            Self::Medium => limits(48.0, 0.2, 0.7, 0.6),
            Self::High => limits(64.0, 0.3, 0.8, 0.4),
        }
    }

    /// Returns the reasons to reject a face; none if it is accepted.
    pub fn reasons(self, face: &DetectedFace) -> Vec<&'static str> {
        let Some(limits) = self.limits() else { return Vec::new() };
        let quality = &face.quality;
        let checks = [
            ("SMALL_BOUNDING_BOX", quality.size < limits.min_size),
            ("LOW_SHARPNESS", quality.sharpness < limits.min_sharpness),
            ("LOW_CONFIDENCE", face.confidence < limits.min_confidence),
            ("EXTREME_POSE", quality.turn.is_some_and(|turn| turn > limits.max_turn)),
        ];
        checks.into_iter().filter(|(_, is_violated)| *is_violated).map(|(reason, _)| reason).collect()
    }

    /// Returns whether a face is accepted.
    pub fn accepts(self, face: &DetectedFace) -> bool {
        self.reasons(face).is_empty()
    }
}
