//! Face engines, and the photos that try them.
//!
//! The synthetic engine finds machine-made marker faces and measures a signature from their pixels. It is never told who is
//! in a photo: an identity reaches the decision only as a vector, the way a real face does.

mod local;
mod scale;
mod synthetic;

pub use local::{Embedders, LoadError, Local, LocalOptions, Model, models};
pub use scale::scale;
pub use synthetic::{
    AlbumSpec, DEFAULT_NOISE, DIMENSIONS, MODEL as SYNTHETIC_MODEL, Synthetic, SyntheticPhoto, draw_marker,
    identity_vector, jpeg, with_noise,
};
