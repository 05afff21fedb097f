//! What signatures of the engine's model mean to clients.

use sparks_domain::Signature;

/// From this similarity on clients take two faces for one person, unless they say otherwise.
pub const DEFAULT_THRESHOLD: f32 = 80.0;

/// The model behind the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    version: String,
    threshold: f32,
}

/// A model that cannot be spoken of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadModel {
    /// The service's own model wants digits and dots.
    #[error("the version of a model is made of digits and dots, unlike {0:?}")]
    Version(String),
    /// Nothing could be above or below it.
    #[error("the cosine from which two faces are one person is between 0 and 1, unlike {0}")]
    Threshold(f32),
}

impl Model {
    /// The model that clients know by this version (such as `7.0`), to which two faces are one person from this cosine on.
    pub fn new(version: &str, threshold: f32) -> Result<Self, BadModel> {
        if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(BadModel::Version(version.to_owned()));
        }
        if !(threshold > 0.0 && threshold < 1.0) {
            return Err(BadModel::Threshold(threshold));
        }
        Ok(Self { version: version.to_owned(), threshold })
    }

    /// What clients know it by.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How alike two faces are, 0 to 100: the threshold is where clients expect it, and below and above it is straight on.
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
    fn the_threshold_is_where_clients_expect_it() {
        let model = Model::new("1.0", 0.6).expect("a model");
        for (cosine, percent) in [(-1.0, 0.0), (0.0, 0.0), (0.3, 40.0), (0.6, 80.0), (0.8, 90.0), (1.0, 100.0)] {
            assert!((model.percent(cosine) - percent).abs() < 1e-3, "{cosine}");
        }
        assert_eq!(model.percent(f32::NAN), 0.0);
    }

    #[test]
    fn a_version_is_digits_and_dots() {
        for wrong in ["", "sparks-1", "1 0"] {
            assert_eq!(Model::new(wrong, 0.5), Err(BadModel::Version(wrong.to_owned())));
        }
        for wrong in [0.0, 1.0, f32::NAN] {
            assert!(matches!(Model::new("1", wrong), Err(BadModel::Threshold(_))));
        }
    }
}
