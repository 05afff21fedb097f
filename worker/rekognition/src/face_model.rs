//! The face model: its version and the scale of similarities.

use sparks_domain::Signature;

/// Default similarity threshold of the API, in percent.
pub const DEFAULT_THRESHOLD: f32 = 80.0;

/// The embedding model of the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    version: String,
    threshold: f32,
}

/// Error of creating a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidModel {
    /// The API allows only digits and dots.
    #[error("a model version consists of digits and dots, found {0:?}")]
    Version(String),
    /// The threshold must separate matches from non-matches.
    #[error("the similarity threshold must be between 0 and 1, found {0}")]
    Threshold(f32),
}

impl Model {
    /// Creates a model with a version (such as `7.0`) and the minimum cosine similarity of a match.
    pub fn new(version: &str, threshold: f32) -> Result<Self, InvalidModel> {
        if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(InvalidModel::Version(version.to_owned()));
        }
        if !(threshold > 0.0 && threshold < 1.0) {
            return Err(InvalidModel::Threshold(threshold));
        }
        Ok(Self { version: version.to_owned(), threshold })
    }

    /// Returns the version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the similarity of two faces in percent: piecewise linear in the cosine, with the threshold of the model at 80.
    pub(crate) fn similarity(&self, one: &Signature, other: &Signature) -> f32 {
        self.percent(one.similarity(other))
    }

    fn percent(&self, cosine: f32) -> f32 {
        let percent = if cosine < self.threshold {
            cosine / self.threshold * DEFAULT_THRESHOLD
        } else {
            DEFAULT_THRESHOLD + (cosine - self.threshold) / (1.0 - self.threshold) * (100.0 - DEFAULT_THRESHOLD)
        };
        if percent.is_finite() { percent.clamp(0.0, 100.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_of_the_model_is_80_percent() {
        let model = Model::new("1.0", 0.6).expect("a model");
        for (cosine, percent) in [(-1.0, 0.0), (0.0, 0.0), (0.3, 40.0), (0.6, 80.0), (0.8, 90.0), (1.0, 100.0)] {
            assert!((model.percent(cosine) - percent).abs() < 1e-3, "{cosine}");
        }
        assert_eq!(model.percent(f32::NAN), 0.0);
    }

    #[test]
    fn invalid_models_are_rejected() {
        for wrong in ["", "sparks-1", "1 0"] {
            assert_eq!(Model::new(wrong, 0.5), Err(InvalidModel::Version(wrong.to_owned())));
        }
        for wrong in [0.0, 1.0, f32::NAN] {
            assert!(matches!(Model::new("1", wrong), Err(InvalidModel::Threshold(_))));
        }
    }
}
