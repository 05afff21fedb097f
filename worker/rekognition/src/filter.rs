//! How poor a face may be.

use sparks_domain::SeenFace;

/// The bars that a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Every face will do.
    None,
    /// What the worker wants of a face that makes somebody known.
    Auto,
    /// Few are too poor.
    Low,
    /// Some are too poor.
    Medium,
    /// Only good ones will do.
    High,
}

/// The least size in pixels, sharpness and confidence, and the most turn.
struct Bar {
    size: f32,
    sharpness: f32,
    confidence: f32,
    turn: f32,
}

impl Filter {
    fn bar(self) -> Option<Bar> {
        let bar = |size, sharpness, confidence, turn| Some(Bar { size, sharpness, confidence, turn });
        match self {
            Self::None => None,
            Self::Low => bar(20.0, 0.05, 0.5, 0.9),
            Self::Auto => bar(32.0, 0.1, 0.6, 0.8),
            Self::Medium => bar(48.0, 0.2, 0.7, 0.6),
            Self::High => bar(64.0, 0.3, 0.8, 0.4),
        }
    }

    /// Why a face is too poor; nothing where it is not.
    pub fn reasons(self, face: &SeenFace) -> Vec<&'static str> {
        let Some(bar) = self.bar() else { return Vec::new() };
        let quality = &face.quality;
        let checks = [
            ("SMALL_BOUNDING_BOX", quality.size < bar.size),
            ("LOW_SHARPNESS", quality.sharpness < bar.sharpness),
            ("LOW_CONFIDENCE", face.confidence < bar.confidence),
            ("EXTREME_POSE", quality.turn.is_some_and(|turn| turn > bar.turn)),
        ];
        checks.into_iter().filter(|(_, poor)| *poor).map(|(reason, _)| reason).collect()
    }

    /// Whether a face is good enough.
    pub fn admits(self, face: &SeenFace) -> bool {
        self.reasons(face).is_empty()
    }
}
