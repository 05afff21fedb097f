//! Requests and responses of the AWS JSON 1.1 protocol.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    api_error::{ApiError, ErrorCode},
    operations::NamedOperation,
};

const JSON: &str = "application/x-amz-json-1.1";
const TARGET: &str = "RekognitionService.";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

/// A complete HTTP request.
pub struct ApiRequest {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ApiRequest {
    /// Returns the requested operation.
    pub fn operation(&self) -> Result<NamedOperation, ApiError> {
        let unknown = || ApiError::new(ErrorCode::UnknownOperation, "Unknown Operation");
        let header = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content_type = header("content-type").split(';').next().unwrap_or_default().trim();
        if self.method != Method::POST || self.path != "/" || !content_type.eq_ignore_ascii_case(JSON) {
            return Err(unknown());
        }
        header("x-amz-target").strip_prefix(TARGET).and_then(NamedOperation::find).ok_or_else(unknown)
    }
}

/// Converts a result to the HTTP response of the request with this ID.
pub fn response(id: Uuid, result: Result<Value, ApiError>) -> Response<Full<Bytes>> {
    let (status, body) = match result {
        Ok(body) => (200, body),
        Err(ApiError { code, message }) => {
            let name = code.name();
            (code.status(), json!({ "__type": name, "Code": name, "Logref": id.to_string(), "Message": message }))
        }
    };
    let mut response = Response::new(Full::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    response
}
