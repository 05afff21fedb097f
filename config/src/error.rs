//! What can be wrong with settings.

use std::{io, path::PathBuf};

use crate::Origin;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file is not there.
    #[error("settings file `{}` does not exist: create it or name another one", .path.display())]
    Missing {
        /// The path looked at.
        path: PathBuf,
    },
    /// The settings file is there and cannot be read.
    #[error("cannot read settings file `{}`: make it a utf-8 text file this user may read", .path.display())]
    Unreadable {
        /// The path looked at.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The settings file is not TOML.
    #[error("settings file `{}` is not toml, correct line {line}: {reason}", .path.display())]
    Syntax {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// Keys or values are wrong; all of them are listed, one per line.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Settings(Vec<Problem>),
}

/// What is wrong with one key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No setting has this key.
    #[error("unknown key `{key}` in {origin}: did you mean `{nearest}`?")]
    Unknown {
        /// The key as written.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// The known key, or for the environment the known variable, that is most like it.
        nearest: String,
    },
    /// The key cannot hold this value.
    #[error("`{key}` is {value} in {origin}: expected {expected}")]
    Invalid {
        /// The key.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// The value as written.
        value: String,
        /// What the key may hold.
        expected: String,
    },
}
