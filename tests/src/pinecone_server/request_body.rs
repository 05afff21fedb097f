//! Parses request bodies and query strings strictly: unknown fields are rejected.

use serde_json::{Map, Value};

use super::api_error::ApiError;

/// A JSON object whose fields are taken one by one.
pub(super) struct RequestBody(Map<String, Value>);

impl RequestBody {
    /// Parses a request body.
    pub fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        match serde_json::from_slice(bytes) {
            Ok(value) => Self::of(value),
            Err(error) => Err(ApiError::invalid_argument(format!("Invalid JSON: line {}", error.line()))),
        }
    }

    /// Wraps a JSON object.
    pub fn of(value: Value) -> Result<Self, ApiError> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ApiError::invalid_argument("Root element must be a message.")),
        }
    }

    /// Takes a field of any type.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a string.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(invalid_value(name, "TYPE_STRING")),
        }
    }

    /// Takes a boolean; false if it is missing.
    pub fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(invalid_value(name, "TYPE_BOOL")),
        }
    }

    /// Takes an unsigned integer.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| invalid_value(name, "TYPE_UINT32")),
        }
    }

    /// Takes a list of strings.
    pub fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().map(Some).ok_or_else(|| invalid_value(name, "TYPE_STRING"))
    }

    /// Takes a list of finite `f32` numbers.
    pub fn numbers(&mut self, name: &str) -> Result<Option<Vec<f32>>, ApiError> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let numbers = list.iter().map(|number| number.as_f64().map(|number| number as f32).filter(|n| n.is_finite()));
        numbers.collect::<Option<_>>().map(Some).ok_or_else(|| invalid_value(name, "TYPE_FLOAT"))
    }

    /// Takes a list of any values.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(invalid_value(name, "a list")),
        }
    }

    /// Rejects fields that were not taken.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::invalid_argument(format!("{name}: Cannot find field."))),
        }
    }
}

fn invalid_value(name: &str, kind: &str) -> ApiError {
    ApiError::invalid_argument(format!("Invalid value at '{name}' ({kind})"))
}

/// Parses a query string, in order.
pub(super) fn parameters(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    });
    decoded.collect::<Option<_>>().ok_or_else(|| ApiError::invalid_argument("Invalid query string"))
}

fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next()?)? * 16 + digit(rest.next()?)?).ok()?,
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}
