//! The error of a failed Pinecone call, classified by its remedy.

use std::{error::Error, fmt, time::Duration};

use reqwest::StatusCode;
use sparks_engine::{DependencyError, IndexError};

use crate::{call_counters::Operation, wire::ErrorBody};

/// A failed call. Its message contains neither keys nor signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PineconeError {
    /// The HTTP status; none without a readable response.
    status: Option<StatusCode>,
    /// The delay that the service requests before a retry.
    pub retry_after: Option<Duration>,
    /// Whether the namespace does not exist. Pinecone creates a namespace with its first vector, so it counts as empty.
    pub is_namespace_missing: bool,
    message: String,
}

impl PineconeError {
    /// Creates the error of a call without a response.
    pub fn no_response(operation: Operation, host: &str, error: &(dyn Error + 'static)) -> Self {
        let is_timeout = error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout);
        let timeout = if is_timeout { "timeout: " } else { "" };
        let message = format!("Pinecone {} at {host}: {timeout}{}", operation.name(), error_chain(error));
        Self { status: None, retry_after: None, is_namespace_missing: false, message }
    }

    /// Creates the error of a response that cannot be parsed. Names only the position: the parser's message may quote a
    /// signature.
    pub fn unreadable_response(operation: Operation, host: &str, error: &serde_json::Error) -> Self {
        let position = format!("line {} column {}", error.line(), error.column());
        let message = format!("Pinecone {} at {host}: failed to parse the response ({position})", operation.name());
        Self { status: None, retry_after: None, is_namespace_missing: false, message }
    }

    /// Creates the error of a response with an error status.
    pub fn error_response(
        operation: Operation,
        host: &str,
        status: StatusCode,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> Self {
        let body: Option<ErrorBody> = serde_json::from_slice(body).ok();
        let is_namespace_missing = status == StatusCode::NOT_FOUND
            && body.as_ref().is_some_and(|body| body.code == 5 && body.message.to_lowercase().contains("namespace"));
        let reason = body.map(|body| sanitize(&body.message)).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = format!("Pinecone {} at {host}: status {}{reason}", operation.name(), status.as_u16());
        Self { status: Some(status), retry_after, is_namespace_missing, message }
    }

    /// Returns the error with all occurrences of a secret removed.
    pub fn without(mut self, secret: &str) -> Self {
        self.message = self.message.replace(secret, "(secret)");
        self
    }

    /// Returns whether a retry may succeed soon.
    pub fn is_retryable(&self) -> bool {
        self.status.is_none_or(|status| {
            status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
        })
    }
}

impl fmt::Display for PineconeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl From<PineconeError> for IndexError {
    fn from(error: PineconeError) -> Self {
        Self::Dependency(error.into())
    }
}

impl From<PineconeError> for DependencyError {
    fn from(error: PineconeError) -> Self {
        let is_retryable = error.is_retryable();
        match (error.status, error.message) {
            (Some(StatusCode::TOO_MANY_REQUESTS), message) => Self::Throttled(message),
            (Some(StatusCode::UNAUTHORIZED), message) => {
                Self::AccessDenied(format!("{message}; the API key is invalid or of another project: set a valid one"))
            }
            (Some(StatusCode::FORBIDDEN), message) => Self::AccessDenied(format!(
                "{message}; the API key lacks a permission, or a quota is exhausted: see Pinecone's console"
            )),
            // Not the fault of a message: all further requests would fail too.
            (Some(StatusCode::PAYMENT_REQUIRED), message) => {
                Self::AccessDenied(format!("{message}; payment required: see Pinecone's console"))
            }
            (_, message) if is_retryable => Self::Unavailable(message),
            // All requests have the same form, so the index does not exist or has another dimension.
            (_, message) => Self::AccessDenied(format!(
                "{message}; check with `sparks doctor` that pinecone.host is an index of the right dimension and metric"
            )),
        }
    }
}

/// Joins the messages of an error and its sources: a transport error by itself says little.
fn error_chain(error: &dyn Error) -> String {
    let mut messages = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        messages.push(error.to_string());
        source = error.source();
    }
    messages.dedup();
    messages.join(": ")
}

/// Shortens a message of the service to one line. A message with fractions is dropped: it may quote a signature.
fn sanitize(message: &str) -> String {
    const MAX_BYTES: usize = 300;
    let is_fraction = |word: &str| word.contains(['.', 'e', 'E']) && word.parse::<f64>().is_ok();
    let mut words = message.split(|c: char| c.is_whitespace() || c.is_control() || "[](){},;:\"".contains(c));
    if words.any(is_fraction) {
        return "(message with numbers not shown)".to_owned();
    }
    let mut shown = String::new();
    // Only whole words: a secret that is removed later must not be cut.
    for word in message.split_whitespace() {
        if shown.len() + word.len() > MAX_BYTES {
            break;
        }
        shown.extend([" ", word].iter().skip(usize::from(shown.is_empty())).copied());
    }
    shown.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_response(status: u16, body: &str) -> PineconeError {
        let status = StatusCode::from_u16(status).expect("valid status");
        PineconeError::error_response(Operation::Query, "host", status, body.as_bytes(), None)
    }

    #[test]
    fn the_status_determines_the_failure_class() {
        let kind = |status| match error_response(status, "").into() {
            IndexError::Dependency(DependencyError::Unavailable(_)) => "unavailable",
            IndexError::Dependency(DependencyError::Throttled(_)) => "throttled",
            IndexError::Dependency(DependencyError::AccessDenied(_)) => "access denied",
            IndexError::Refused(_) => "refused",
            IndexError::Store(_) => "store",
        };
        for (status, expected) in [
            (400, "access denied"),
            (401, "access denied"),
            (402, "access denied"),
            (403, "access denied"),
            (404, "access denied"),
            (408, "unavailable"),
            (422, "access denied"),
            (429, "throttled"),
            (500, "unavailable"),
            (503, "unavailable"),
            (302, "access denied"),
        ] {
            assert_eq!(kind(status), expected, "{status}");
        }
    }

    #[test]
    fn messages_name_the_call_and_the_reason() {
        let body =
            r#"{"code":3,"message":"Vector dimension 3 does not match\nthe dimension of the index 128","details":[]}"#;
        let error = IndexError::from(error_response(400, body)).to_string();
        let reason = "Vector dimension 3 does not match the dimension of the index 128";
        let remedy = "check with `sparks doctor` that pinecone.host is an index of the right dimension and metric";
        assert_eq!(error, format!("face index access denied: Pinecone query at host: status 400: {reason}; {remedy}"));
        assert_eq!(error_response(502, "<html>").message, "Pinecone query at host: status 502");
        assert!(error_response(400, &format!(r#"{{"message":"{}"}}"#, "x".repeat(5000))).message.len() < 400);
    }

    #[test]
    fn a_message_never_quotes_a_signature() {
        for quoted in ["bad value [0.125,-0.5]", "bad value 1e-3", "values: 0.25"] {
            let message = error_response(400, &format!(r#"{{"code":3,"message":"{quoted}"}}"#)).message;
            assert_eq!(message, "Pinecone query at host: status 400: (message with numbers not shown)");
        }
    }

    #[test]
    fn a_quoted_key_is_removed() {
        let message = error_response(401, r#"{"code":16,"message":"no such key: pcsk_x"}"#).without("pcsk_x").message;
        assert_eq!(message, "Pinecone query at host: status 401: no such key: (secret)");
    }

    #[test]
    fn a_missing_namespace_is_recognized() {
        assert!(error_response(404, r#"{"code":5,"message":"Namespace not found","details":[]}"#).is_namespace_missing);
        assert!(!error_response(404, r#"{"code":5,"message":"Index not found","details":[]}"#).is_namespace_missing);
        assert!(!error_response(404, "").is_namespace_missing);
    }
}
