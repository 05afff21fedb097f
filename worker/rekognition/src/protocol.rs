//! Requests and responses as they go over the wire: JSON 1.1 of the cloud's services.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    operations::Named,
    refusal::{Kind, Refusal},
};

const JSON: &str = "application/x-amz-json-1.1";
const TARGET: &str = "RekognitionService.";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

/// A request, whole.
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    /// The operation it names.
    pub fn operation(&self) -> Result<Named, Refusal> {
        let unknown = || Refusal::new(Kind::UnknownOperation, "Unknown Operation");
        let header = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = header("content-type").split(';').next().unwrap_or_default().trim();
        if self.method != Method::POST || self.path != "/" || !kind.eq_ignore_ascii_case(JSON) {
            return Err(unknown());
        }
        header("x-amz-target").strip_prefix(TARGET).and_then(Named::find).ok_or_else(unknown)
    }
}

/// The response to a request that has this number.
pub fn response(id: Uuid, answer: Result<Value, Refusal>) -> Response<Full<Bytes>> {
    let (status, body) = match answer {
        Ok(body) => (200, body),
        Err(Refusal { kind, message }) => {
            let name = kind.name();
            (kind.status(), json!({ "__type": name, "Code": name, "Logref": id.to_string(), "Message": message }))
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
