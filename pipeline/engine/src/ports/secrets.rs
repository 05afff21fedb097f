//! What nobody may read in settings, logs or errors.

use std::fmt;

use async_trait::async_trait;

/// Knows secrets by name.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret with this name.
    async fn secret(&self, name: &str) -> Result<Secret, SecretsError>;
}

/// Something that is shown to nobody by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps it.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Shows it to whoever needs it to get in.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Why a secret is not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// There is none: somebody has to put it there.
    #[error("there is no secret {0}")]
    NotFound(String),
    /// It is not ours to read: somebody has to grant it.
    #[error("the secret {name} is not ours to read: {reason}")]
    Forbidden {
        /// Its name.
        name: String,
        /// What the store says.
        reason: String,
    },
    /// Trying later may help.
    #[error("the secret {name}: {reason}")]
    Unavailable {
        /// Its name.
        name: String,
        /// What the store says.
        reason: String,
    },
}
