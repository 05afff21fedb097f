//! Secrets as parameters of SSM.

use std::{collections::HashMap, sync::Mutex, sync::PoisonError};

use async_trait::async_trait;
use aws_sdk_ssm::Client;
use sparks_engine::{Secret, Secrets, SecretsError};

use crate::{connect::Connection, trouble::patiently};

/// Asks for each parameter once. A secret that changes is learnt when the worker starts anew.
pub struct SsmSecrets {
    client: Client,
    known: Mutex<HashMap<String, Secret>>,
}

impl SsmSecrets {
    /// Knows nothing yet.
    pub fn new(connection: &Connection) -> Self {
        Self { client: connection.ssm(), known: Mutex::default() }
    }

    fn known(&self, name: &str) -> Option<Secret> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[async_trait]
impl Secrets for SsmSecrets {
    async fn secret(&self, name: &str) -> Result<Secret, SecretsError> {
        if let Some(secret) = self.known(name) {
            return Ok(secret);
        }
        let get = || self.client.get_parameter().name(name).with_decryption(true).send();
        let answer = patiently(get).await.map_err(|trouble| match trouble {
            trouble if trouble.is(&["ParameterNotFound"]) => SecretsError::NotFound(name.to_owned()),
            trouble if trouble.is_forbidden() => {
                let reason =
                    format!("{trouble}; grant ssm:GetParameter, and kms:Decrypt where it has a key of its own");
                SecretsError::Forbidden { name: name.to_owned(), reason }
            }
            trouble => SecretsError::Unavailable { name: name.to_owned(), reason: trouble.words },
        })?;
        let value = answer.parameter.and_then(|parameter| parameter.value);
        let secret = Secret::new(value.ok_or_else(|| SecretsError::NotFound(name.to_owned()))?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(name.to_owned()).or_insert(secret).clone())
    }
}
