//! Face engines, and synthetic photos to test them.
//!
//! The synthetic engine finds machine-made marker faces and measures an embedding from their pixels. The identities in a photo
//! reach the decision only as vectors, as with real faces.

mod local;
mod scale;
mod synthetic;

pub use local::{Embedders, LoadError, LocalEngine, LocalOptions, Model, models};
pub use scale::scale;
pub use synthetic::{
    AlbumSpec, DEFAULT_NOISE, DIMENSIONS, MODEL as SYNTHETIC_MODEL, SyntheticEngine, SyntheticPhoto, draw_marker,
    identity_vector, jpeg, with_noise,
};
