//! Secrets as parameters of SSM.
//!
//! The one call that is needed is made here, signed by the SDK's own crate: that of SSM has a hundred and fifty others, and
//! takes a minute to compile.

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
use sparks_engine::{Secret, Secrets, SecretsError};

use crate::{
    connect::Connection,
    trouble::{Trouble, pauses},
};

/// Asks for each parameter once. A secret that changes is learnt when the worker starts anew.
pub struct SsmSecrets {
    service: Service,
    known: Mutex<HashMap<String, Secret>>,
}

/// The way to SSM.
pub(crate) struct Service {
    pub connector: Connector,
    pub credentials: Option<SharedCredentialsProvider>,
    pub region: String,
    pub endpoint: String,
}

const TARGET: &str = "AmazonSSM.GetParameter";
const CONTENT_TYPE: &str = "application/x-amz-json-1.1";
const ANSWER: Duration = Duration::from_secs(10);

impl SsmSecrets {
    /// Knows nothing yet.
    pub fn new(connection: &Connection) -> Self {
        Self { service: connection.ssm(), known: Mutex::default() }
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
        let answer = self.service.parameter(name).await.map_err(|trouble| match trouble {
            trouble if trouble.is(&["ParameterNotFound"]) => SecretsError::NotFound(name.to_owned()),
            trouble if trouble.is_forbidden() => {
                let reason =
                    format!("{trouble}; grant ssm:GetParameter, and kms:Decrypt where it has a key of its own");
                SecretsError::Forbidden { name: name.to_owned(), reason }
            }
            trouble => SecretsError::Unavailable { name: name.to_owned(), reason: trouble.words },
        })?;
        let value = answer["Parameter"]["Value"].as_str();
        let secret = Secret::new(value.ok_or_else(|| SecretsError::NotFound(name.to_owned()))?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(name.to_owned()).or_insert(secret).clone())
    }
}

impl Service {
    /// The parameter, asked for again while the service is busy or does not answer.
    async fn parameter(&self, name: &str) -> Result<Value, Trouble> {
        let body = json!({ "Name": name, "WithDecryption": true }).to_string();
        let mut pauses = pauses();
        loop {
            let asked = tokio::time::timeout(ANSWER, self.ask(&body)).await;
            let trouble = match asked.unwrap_or_else(|_| Err(trouble("SSM does not answer"))) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let helps = trouble.is_busy() || trouble.status.is_none_or(|status| status >= 500);
            match pauses.next().filter(|_| helps) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(trouble),
            }
        }
    }

    async fn ask(&self, body: &str) -> Result<Value, Trouble> {
        let response = self.connector.call(self.signed(body).await?).await.map_err(trouble)?;
        answer(response).await
    }

    async fn signed(&self, body: &str) -> Result<HttpRequest, Trouble> {
        let credentials = self.credentials.as_ref().ok_or_else(|| trouble("nobody says who we are"))?;
        let identity = credentials.provide_credentials().await.map_err(trouble)?.into();
        let settings = v4::SigningParams::builder().identity(&identity).region(&self.region).name("ssm");
        let settings = settings.time(SystemTime::now()).settings(SigningSettings::default());
        let settings = settings.build().map_err(trouble)?.into();
        let headers = [("content-type", CONTENT_TYPE), ("x-amz-target", TARGET)];
        let signable = SignableBody::Bytes(body.as_bytes());
        let signable = SignableRequest::new("POST", &self.endpoint, headers.into_iter(), signable).map_err(trouble)?;
        let (signature, _) = sign(signable, &settings).map_err(trouble)?.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST").map_err(trouble)?;
        request.set_uri(self.endpoint.as_str()).map_err(trouble)?;
        for (name, value) in headers.into_iter().chain(signature.headers()) {
            request.headers_mut().insert(name.to_owned(), value.to_owned());
        }
        Ok(request)
    }
}

async fn answer(response: HttpResponse) -> Result<Value, Trouble> {
    let status = response.status();
    let body = ByteStream::new(response.into_body()).collect().await.map_err(trouble)?.into_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(answer);
    }
    // Names of errors may have that of their service before them.
    let code = answer["__type"].as_str().map(|name| name.rsplit('#').next().unwrap_or(name).to_owned());
    let message = ["message", "Message"].iter().find_map(|field| answer[field].as_str()).unwrap_or_default();
    let words = format!("{}: {message}", code.as_deref().unwrap_or("SSM"));
    Err(Trouble { code, status: Some(status.as_u16()), words })
}

fn trouble(error: impl ToString) -> Trouble {
    Trouble { code: None, status: None, words: error.to_string() }
}
