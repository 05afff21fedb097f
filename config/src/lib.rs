//! Typed settings in layers: defaults, file, environment, flags
//!
//! `default.toml` documents every key and holds its default. A later layer overrides values but cannot add keys: an unknown
//! key is an error that suggests the most similar known key. Renamed keys remain accepted (`alias.rs`).

mod alias;
mod error;
mod layers;
mod setting;
mod settings;
mod value_kind;

pub use alias::Deprecation;
pub use error::{ConfigError, SettingError};
pub use layers::{Loaded, load};
pub use setting::{DEFAULTS, Origin, Setting};
pub use settings::{
    Analyzer, Aws, AwsEndpoints, Backend, Consolidation, Crop, Decoder, FaceModel, Faces, Fit, Index, Limits,
    NewPerson, Pinecone, Prices, Publish, Queue, Rekognition, Run, SecondaryAnalyzer, Settings, Table, TaggingKey,
    Variant, Variants,
};

#[cfg(test)]
mod tests;
