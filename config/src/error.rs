//! Errors of loading settings.

use std::{io, path::PathBuf};

use crate::Origin;

/// Error of loading the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file does not exist.
    #[error("settings file `{}` does not exist; create it or name another one", .path.display())]
    Missing {
        /// The path of the file.
        path: PathBuf,
    },
    /// The settings file exists but cannot be read as text.
    #[error("failed to read settings file `{}`", .path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The settings file is not valid TOML.
    #[error("failed to parse settings file `{}` as TOML: line {line}: {reason}", .path.display())]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The message of the parser.
        reason: String,
    },
    /// Invalid keys or values, all of them, one per line.
    #[error("{}", .0.iter().map(SettingError::to_string).collect::<Vec<_>>().join("\n"))]
    Settings(Vec<SettingError>),
}

/// Error in one setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The key does not exist.
    #[error("unknown key `{key}` in {origin}: did you mean `{nearest}`?")]
    Unknown {
        /// The key as written.
        key: String,
        /// The layer that contains it.
        origin: Origin,
        /// The most similar known key, or for the environment the most similar variable.
        nearest: String,
    },
    /// The value is not valid for the key.
    #[error("`{key}` is {value} in {origin}: expected {expected}")]
    Invalid {
        /// The key.
        key: String,
        /// The layer that contains it.
        origin: Origin,
        /// The value as written.
        value: String,
        /// A description of the valid values.
        expected: String,
    },
    /// One layer sets both a deprecated key and its replacement.
    #[error("`{deprecated}` and `{name}` in {layer} are the same setting: remove `{deprecated}`, which is deprecated")]
    Duplicate {
        /// The deprecated key or environment variable.
        deprecated: String,
        /// The key or environment variable that replaced it.
        name: String,
        /// The layer that contains both.
        layer: String,
    },
}
