//! Validates vector IDs, namespaces, values and metadata.

use serde_json::{Map, Value, json};

use super::{api_error::ApiError, vectors::Vectors};

/// The longest vector ID or namespace.
const MAX_ID_LENGTH: usize = 512;

/// The largest number of vectors or IDs in a request.
pub(super) const MAX_VECTORS: usize = 1000;

/// The largest metadata of a vector.
const MAX_METADATA_BYTES: usize = 40 * 1024;

/// Validates a namespace. `__default__` is an alias of the empty name.
pub(super) fn parse_namespace(name: Option<String>) -> Result<String, ApiError> {
    let name = name.filter(|name| name != "__default__").unwrap_or_default();
    match name.len() <= MAX_ID_LENGTH && name.is_ascii() && !name.contains('\0') {
        true => Ok(name),
        false => Err(ApiError::invalid_argument(format!("Namespace must be at most {MAX_ID_LENGTH} ASCII characters"))),
    }
}

/// Validates a vector ID.
pub(super) fn parse_vector_id(id: String) -> Result<String, ApiError> {
    match id.len() {
        0 => Err(ApiError::invalid_argument("Vector ID must not be empty")),
        1..=MAX_ID_LENGTH if id.is_ascii() => Ok(id),
        1..=MAX_ID_LENGTH => Err(ApiError::invalid_argument(format!("Vector ID must be ASCII, but got '{id}'"))),
        length => {
            Err(ApiError::invalid_argument(format!("Vector ID length {length} exceeds the limit of {MAX_ID_LENGTH}")))
        }
    }
}

/// Validates the values of a vector.
pub(super) fn parse_values(vectors: &Vectors, values: Vec<f32>) -> Result<Vec<f32>, ApiError> {
    if values.len() != vectors.dimension {
        let (given, dimension) = (values.len(), vectors.dimension);
        let message = format!("Vector dimension {given} does not match the dimension of the index {dimension}");
        return Err(ApiError::invalid_argument(message));
    }
    if values.iter().all(|value| *value == 0.0) {
        return Err(ApiError::invalid_argument("Dense vectors must contain at least one non-zero value."));
    }
    Ok(values)
}

/// Validates the metadata of a vector.
pub(super) fn metadata(value: Option<Value>) -> Result<Map<String, Value>, ApiError> {
    let members = match value {
        None => return Ok(Map::new()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(ApiError::invalid_argument("Metadata must be an object")),
    };
    for (name, value) in &members {
        let is_valid = match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
            Value::Array(list) => list.iter().all(Value::is_string),
            _ => false,
        };
        if !is_valid {
            let kinds = "a string, number, boolean or list of strings";
            return Err(ApiError::invalid_argument(format!(
                "Metadata value must be {kinds}, got '{value}' for field '{name}'"
            )));
        }
    }
    let size = json!(members).to_string().len();
    if size > MAX_METADATA_BYTES {
        let message =
            format!("Metadata size is {size} bytes, which exceeds the limit of {MAX_METADATA_BYTES} bytes per vector");
        return Err(ApiError::invalid_argument(message));
    }
    Ok(members)
}
