//! Routes requests to operations.

use hyper::Method;
use serde_json::Value;

use super::{
    api_error::ApiError,
    reads,
    request_body::{RequestBody, parameters},
    vectors::Vectors,
    writes,
};

/// Returns the operation of a method and path.
pub(super) fn operation(method: &Method, path: &str) -> Result<&'static str, ApiError> {
    match (method.as_str(), path) {
        ("POST", "/query") => Ok("query"),
        ("POST", "/vectors/upsert") => Ok("upsert"),
        ("POST", "/vectors/update") => Ok("update"),
        ("POST", "/vectors/delete") => Ok("delete"),
        ("GET", "/vectors/fetch") => Ok("fetch"),
        ("GET", "/vectors/list") => Ok("list"),
        ("POST", "/describe_index_stats") => Ok("describe_index_stats"),
        (method, path) => Err(ApiError::not_found(format!("{method} {path}: no such operation"))),
    }
}

/// Performs an operation.
pub(super) fn perform(vectors: &mut Vectors, operation: &str, query: &str, body: &[u8]) -> Result<Value, ApiError> {
    let parameters = parameters(query)?;
    match operation {
        "fetch" => return reads::fetch(vectors, parameters),
        "list" => return reads::list(vectors, parameters),
        _ if !parameters.is_empty() => return Err(ApiError::invalid_argument("Unexpected query string")),
        _ => {}
    }
    let mut body = RequestBody::parse(body)?;
    for field in ["filter", "sparseVector", "sparseValues", "queries"] {
        if body.take(field).is_some() {
            return Err(ApiError::unimplemented(field));
        }
    }
    match operation {
        "query" => reads::nearest(vectors, body),
        "upsert" => writes::upsert(vectors, body),
        "update" => writes::update(vectors, body),
        "delete" => writes::delete(vectors, body),
        _ => reads::describe(vectors, body),
    }
}
