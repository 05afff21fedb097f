//! Typed settings, layered: defaults, file, environment, flags
//!
//! `default.toml` documents every key and holds its default. Each later layer may change a key but
//! never add one: what no layer below knows is an error that names the nearest known key.

mod error;
mod kind;
mod layers;
mod setting;
mod settings;

pub use error::{ConfigError, Problem};
pub use layers::{Loaded, load};
pub use setting::{DEFAULTS, Origin, Setting};
pub use settings::{
    Analyzer, Aws, AwsEndpoints, Backend, Companion, Consolidation, Crop, Darkroom, FaceModel, Faces, Fit, Founding,
    Index, Limits, Pinecone, Prices, Publish, Queue, Rekognition, Run, Settings, Table, TaggingKey, Variant, Variants,
};

#[cfg(test)]
mod tests;
