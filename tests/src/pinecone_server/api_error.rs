//! Error responses.

use http_body_util::Full;
use hyper::{Response, body::Bytes};
use serde_json::json;

/// An error response, with Pinecone's wording where it is known.
pub(super) struct ApiError {
    status: u16,
    /// The gRPC status code; `None` for plain-text responses.
    code: Option<u8>,
    message: String,
    retry_after: Option<String>,
}

impl ApiError {
    fn new(status: u16, code: u8, message: impl Into<String>) -> Self {
        Self { status, code: Some(code), message: message.into(), retry_after: None }
    }

    /// `INVALID_ARGUMENT`.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(400, 3, message)
    }

    /// `NOT_FOUND`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, 5, message)
    }

    /// `UNIMPLEMENTED`: Pinecone supports this, but this server does not.
    pub fn unimplemented(what: &str) -> Self {
        Self::new(501, 12, format!("{what} is not supported by this test server"))
    }

    /// `OUT_OF_RANGE`: the request body is too large.
    pub fn too_large(found: usize, limit: usize) -> Self {
        let message =
            format!("Error, decoded message length too large: found {found} bytes, the limit is: {limit} bytes");
        Self::new(400, 11, message)
    }

    /// `RESOURCE_EXHAUSTED`: throttled.
    pub fn throttled(retry_after: Option<String>) -> Self {
        let message = "Request failed. You've reached the max read units per second for the index.";
        Self { retry_after, ..Self::new(429, 8, message) }
    }

    /// 503 from the load balancer.
    pub fn unavailable() -> Self {
        Self { status: 503, code: None, message: "no healthy upstream".into(), retry_after: None }
    }

    /// 401: the API key is wrong.
    pub fn unauthorized() -> Self {
        Self { status: 401, code: None, message: "Unauthorized".into(), retry_after: None }
    }

    /// Returns the HTTP response.
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

/// Creates an HTTP response.
pub(super) fn response(status: u16, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    response
}
