//! Secrets, which no setting, log line or error shows.

use std::fmt;

use async_trait::async_trait;

use super::DependencyError;

/// Reads secrets by name.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Returns the secret with this name.
    async fn secret(&self, name: &str) -> Result<Secret, SecretsError>;
}

/// A secret whose `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns the secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Errors of reading a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// The secret does not exist; an operator must create it.
    #[error("secret {0} does not exist")]
    NotFound(String),
    /// The secret store failed.
    #[error("secret {name}: {error}")]
    Dependency {
        /// The name.
        name: String,
        /// The failure.
        error: DependencyError,
    },
}
