//! What an index can be asked for.

use hyper::Method;
use serde_json::Value;

use super::{
    body::{Body, parameters},
    reads,
    refusal::Refusal,
    vectors::Vectors,
    writes,
};

/// What is asked for there.
pub(super) fn operation(method: &Method, path: &str) -> Result<&'static str, Refusal> {
    match (method.as_str(), path) {
        ("POST", "/query") => Ok("query"),
        ("POST", "/vectors/upsert") => Ok("upsert"),
        ("POST", "/vectors/update") => Ok("update"),
        ("POST", "/vectors/delete") => Ok("delete"),
        ("GET", "/vectors/fetch") => Ok("fetch"),
        ("GET", "/vectors/list") => Ok("list"),
        ("POST", "/describe_index_stats") => Ok("describe_index_stats"),
        (method, path) => Err(Refusal::not_found(format!("{method} {path}: no such operation"))),
    }
}

/// Does what is asked for.
pub(super) fn perform(vectors: &mut Vectors, operation: &str, query: &str, body: &[u8]) -> Result<Value, Refusal> {
    let parameters = parameters(query)?;
    match operation {
        "fetch" => return reads::fetch(vectors, parameters),
        "list" => return reads::list(vectors, parameters),
        _ if !parameters.is_empty() => return Err(Refusal::argument("Unexpected query string")),
        _ => {}
    }
    let mut body = Body::parse(body)?;
    for beyond in ["filter", "sparseVector", "sparseValues", "queries"] {
        if body.take(beyond).is_some() {
            return Err(Refusal::beyond(beyond));
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
