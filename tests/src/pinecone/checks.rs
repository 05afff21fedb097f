//! What an index takes.

use serde_json::{Map, Value, json};

use super::{refusal::Refusal, vectors::Vectors};

/// How long a name may be, of a vector or of a namespace.
const MOST_ID: usize = 512;

/// How many vectors, or names, a request may have.
pub(super) const MOST_VECTORS: usize = 1000;

/// What metadata may weigh.
const MOST_METADATA: usize = 40 * 1024;

/// A namespace that may be one. The one without a name has an alias.
pub(super) fn space(name: Option<String>) -> Result<String, Refusal> {
    let name = name.filter(|name| name != "__default__").unwrap_or_default();
    match name.len() <= MOST_ID && name.is_ascii() && !name.contains('\0') {
        true => Ok(name),
        false => Err(Refusal::argument(format!("Namespace must be at most {MOST_ID} ASCII characters"))),
    }
}

/// A name that may be one.
pub(super) fn named(id: String) -> Result<String, Refusal> {
    match id.len() {
        0 => Err(Refusal::argument("Vector ID must not be empty")),
        1..=MOST_ID if id.is_ascii() => Ok(id),
        1..=MOST_ID => Err(Refusal::argument(format!("Vector ID must be ASCII, but got '{id}'"))),
        length => Err(Refusal::argument(format!("Vector ID length {length} exceeds the limit of {MOST_ID}"))),
    }
}

/// Values that the index takes.
pub(super) fn fitting(vectors: &Vectors, values: Vec<f32>) -> Result<Vec<f32>, Refusal> {
    if values.len() != vectors.dimension {
        let (given, dimension) = (values.len(), vectors.dimension);
        let words = format!("Vector dimension {given} does not match the dimension of the index {dimension}");
        return Err(Refusal::argument(words));
    }
    if values.iter().all(|value| *value == 0.0) {
        return Err(Refusal::argument("Dense vectors must contain at least one non-zero value."));
    }
    Ok(values)
}

/// What may be kept beside a vector.
pub(super) fn metadata(value: Option<Value>) -> Result<Map<String, Value>, Refusal> {
    let members = match value {
        None => return Ok(Map::new()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Refusal::argument("Metadata must be an object")),
    };
    for (name, value) in &members {
        let fits = match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
            Value::Array(list) => list.iter().all(Value::is_string),
            _ => false,
        };
        if !fits {
            let kinds = "a string, number, boolean or list of strings";
            return Err(Refusal::argument(format!("Metadata value must be {kinds}, got '{value}' for field '{name}'")));
        }
    }
    let size = json!(members).to_string().len();
    if size > MOST_METADATA {
        let words =
            format!("Metadata size is {size} bytes, which exceeds the limit of {MOST_METADATA} bytes per vector");
        return Err(Refusal::argument(words));
    }
    Ok(members)
}
