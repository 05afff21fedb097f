//! What an index says when it does not do what it is asked.

use http_body_util::Full;
use hyper::{Response, body::Bytes};
use serde_json::json;

/// A refusal, in Pinecone's words as far as they are known.
pub(super) struct Refusal {
    status: u16,
    /// By gRPC; nothing where words alone are said.
    code: Option<u8>,
    message: String,
    retry_after: Option<String>,
}

impl Refusal {
    fn new(status: u16, code: u8, message: impl Into<String>) -> Self {
        Self { status, code: Some(code), message: message.into(), retry_after: None }
    }

    /// What is asked makes no sense.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(400, 3, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, 5, message)
    }

    /// This index cannot do it, though Pinecone can.
    pub fn beyond(what: &str) -> Self {
        Self::new(501, 12, format!("{what} is beyond this index"))
    }

    /// The request is too large.
    pub fn too_large(found: usize, limit: usize) -> Self {
        let words =
            format!("Error, decoded message length too large: found {found} bytes, the limit is: {limit} bytes");
        Self::new(400, 11, words)
    }

    /// There are too many requests.
    pub fn too_many(retry_after: Option<String>) -> Self {
        let words = "Request failed. You've reached the max read units per second for the index.";
        Self { retry_after, ..Self::new(429, 8, words) }
    }

    /// It is away.
    pub fn down() -> Self {
        Self { status: 503, code: None, message: "no healthy upstream".into(), retry_after: None }
    }

    /// The key is wrong.
    pub fn unauthorized() -> Self {
        Self { status: 401, code: None, message: "Unauthorized".into(), retry_after: None }
    }

    /// As an answer.
    pub fn response(self) -> Response<Full<Bytes>> {
        let mut response = match self.code {
            Some(code) => {
                let body = json!({ "code": code, "message": self.message, "details": [] });
                response(self.status, "application/json", body.to_string())
            }
            None => response(self.status, "text/plain", self.message),
        };
        if let Some(seconds) = self.retry_after.and_then(|seconds| seconds.parse().ok()) {
            response.headers_mut().insert("retry-after", seconds);
        }
        if self.status == 401 {
            response.headers_mut().insert("www-authenticate", hyper::header::HeaderValue::from_static("Unauthorized"));
        }
        response
    }
}

/// An answer.
pub(super) fn response(status: u16, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    response
}
