//! How well the engine and the rules tell persons apart, on photos of which somebody knows who is in them.

mod labelled;
mod score;
mod trial;
mod verification;

pub use labelled::{LabelledPhoto, find};
pub use score::{Counts, Score};
pub use trial::{Sighting, Trial};
pub use verification::Verification;
