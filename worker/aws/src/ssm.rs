//! Secrets from the SSM parameter store.
//!
//! `GetParameter`, the one operation that is needed, is called without the SDK crate of SSM, which has 150 operations and takes a
//! minute to compile. Requests are signed by `aws-sigv4`.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::{
    http::HttpConnector,
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use sparks_engine::{DependencyError, Secret, Secrets, SecretsError};

use crate::{
    connect::Connection,
    error::AwsError,
    retry::{backoff, log_retry},
};

/// Reads each parameter once and caches it: a changed secret takes effect when the worker restarts.
pub struct SsmSecrets {
    client: SsmClient,
    cache: Mutex<HashMap<String, Secret>>,
}

/// An HTTP client of SSM.
pub(crate) struct SsmClient {
    pub connector: Connector,
    pub credentials: Option<SharedCredentialsProvider>,
    pub region: String,
    pub endpoint: String,
}

const TARGET: &str = "AmazonSSM.GetParameter";
const CONTENT_TYPE: &str = "application/x-amz-json-1.1";
const TIMEOUT: Duration = Duration::from_secs(10);

impl SsmSecrets {
    /// Creates an empty cache. Calls no service.
    pub fn new(connection: &Connection) -> Self {
        Self { client: connection.ssm(), cache: Mutex::default() }
    }

    fn cached(&self, name: &str) -> Option<Secret> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[async_trait]
impl Secrets for SsmSecrets {
    async fn secret(&self, name: &str) -> Result<Secret, SecretsError> {
        if let Some(secret) = self.cached(name) {
            return Ok(secret);
        }
        let answer = self.client.get_parameter(name).await.map_err(|error| match error {
            error if error.has_code(&["ParameterNotFound"]) => SecretsError::NotFound(name.to_owned()),
            error if error.is_access_denied() => {
                let reason =
                    format!("{error}; grant ssm:GetParameter, and kms:Decrypt if the parameter has its own KMS key");
                SecretsError::Dependency { name: name.to_owned(), error: DependencyError::AccessDenied(reason) }
            }
            error => SecretsError::Dependency { name: name.to_owned(), error: error.into() },
        })?;
        let value = answer["Parameter"]["Value"].as_str();
        let secret = Secret::new(value.ok_or_else(|| SecretsError::NotFound(name.to_owned()))?);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cache.entry(name.to_owned()).or_insert(secret).clone())
    }
}

impl SsmClient {
    /// Reads the parameter, with retries while SSM throttles or is unavailable.
    async fn get_parameter(&self, name: &str) -> Result<Value, AwsError> {
        let body = json!({ "Name": name, "WithDecryption": true }).to_string();
        let mut backoff = backoff();
        loop {
            let response = tokio::time::timeout(TIMEOUT, self.send(&body)).await;
            let timeout = || transport_error(format!("timeout: no response within {} s", TIMEOUT.as_secs()));
            let error = match response.unwrap_or_else(|_| Err(timeout())) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_retryable = error.is_throttled() || error.status.is_none_or(|status| status >= 500);
            match backoff.next().filter(|_| is_retryable) {
                Some(pause) => {
                    log_retry(&error, pause);
                    tokio::time::sleep(pause).await;
                }
                None => return Err(error),
            }
        }
    }

    async fn send(&self, body: &str) -> Result<Value, AwsError> {
        let response = self.connector.call(self.sign_request(body).await?).await.map_err(transport_error)?;
        parse_response(response).await
    }

    async fn sign_request(&self, body: &str) -> Result<HttpRequest, AwsError> {
        let credentials = self.credentials.as_ref().ok_or_else(|| transport_error("no credentials configured"))?;
        let identity = credentials.provide_credentials().await.map_err(transport_error)?.into();
        let settings = v4::SigningParams::builder().identity(&identity).region(&self.region).name("ssm");
        let settings = settings.time(SystemTime::now()).settings(SigningSettings::default());
        let settings = settings.build().map_err(transport_error)?.into();
        let headers = [("content-type", CONTENT_TYPE), ("x-amz-target", TARGET)];
        let signable = SignableBody::Bytes(body.as_bytes());
        let signable =
            SignableRequest::new("POST", &self.endpoint, headers.into_iter(), signable).map_err(transport_error)?;
        let (signature, _) = sign(signable, &settings).map_err(transport_error)?.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST").map_err(transport_error)?;
        request.set_uri(self.endpoint.as_str()).map_err(transport_error)?;
        for (name, value) in headers.into_iter().chain(signature.headers()) {
            request.headers_mut().insert(name.to_owned(), value.to_owned());
        }
        Ok(request)
    }
}

async fn parse_response(response: HttpResponse) -> Result<Value, AwsError> {
    let status = response.status();
    let body = ByteStream::new(response.into_body()).collect().await.map_err(transport_error)?.into_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(answer);
    }
    // An error type may have the prefix `com.amazonaws.ssm#`.
    let code = answer["__type"].as_str().map(|name| name.rsplit('#').next().unwrap_or(name).to_owned());
    let message = ["message", "Message"].iter().find_map(|field| answer[field].as_str()).unwrap_or_default();
    let message = match &code {
        Some(code) => format!("{code}: {message}"),
        None => format!("status {}: {message}", status.as_u16()),
    };
    Err(AwsError { status: Some(status.as_u16()), ..AwsError::new("SSM", "GetParameter", code, message) })
}

fn transport_error(error: impl ToString) -> AwsError {
    AwsError::new("SSM", "GetParameter", None, error)
}
