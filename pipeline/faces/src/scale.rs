//! The distribution of similarities between different persons, per model.

use sparks_domain::Scale;

use crate::{Embedders, SYNTHETIC_MODEL};

const SFACE_MOBILEFACENET: &str = Embedders::SfaceMobilefacenet.model();
const DLIB_MOBILEFACENET: &str = Embedders::DlibMobilefacenet.model();
const DLIB: &str = Embedders::Dlib.model();

/// Returns how to interpret the cosine similarities of the model with this name. The first was measured on 714,000 pairs of
/// different persons in seven sets of photos, the others between 609 portraits of as many persons.
pub fn scale(model: &str) -> Option<Scale> {
    match model {
        SFACE_MOBILEFACENET => Some(Scale { median: -0.006, spread: 0.09, match_from: 5.0 }),
        DLIB_MOBILEFACENET => Some(Scale { median: 0.687, spread: 0.036, match_from: 4.1 }),
        DLIB => Some(Scale { median: 0.85, spread: 0.0225, match_from: 4.1 }),
        // Random directions.
        SYNTHETIC_MODEL => Some(Scale { median: 0.0, spread: 0.083, match_from: 4.1 }),
        _ => None,
    }
}
