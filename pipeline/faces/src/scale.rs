//! How alike strangers are, to each model.

use sparks_domain::Scale;

use crate::{Embedders, SYNTHETIC_MODEL};

const BOTH: &str = Embedders::Both.model();
const DLIB: &str = Embedders::Dlib.model();

/// How to read the similarities of the model with this name. Measured between 609 portraits of as many persons, and close
/// to that on four other sets of photos.
pub fn scale(model: &str) -> Option<Scale> {
    match model {
        BOTH => Some(Scale { unrelated: 0.687, spread: 0.036, skew: 1.0 }),
        DLIB => Some(Scale { unrelated: 0.85, spread: 0.0225, skew: 0.75 }),
        // Directions drawn at random.
        SYNTHETIC_MODEL => Some(Scale { unrelated: 0.0, spread: 0.083, skew: 1.0 }),
        _ => None,
    }
}
