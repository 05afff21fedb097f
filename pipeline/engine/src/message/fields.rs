//! Typed access to the fields of a JSON message. Errors name the path of a field that is missing or of the wrong type.

use serde_json::{Map, Value};

use super::malformed::{MalformedMessage, truncate};

/// The fields of one JSON object. `null` counts as absent, and unknown fields are ignored.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// Returns the top-level fields of the message.
    pub fn of_message(message: &'a Value) -> Result<Self, MalformedMessage> {
        let object = message.as_object();
        let object =
            object.ok_or_else(|| MalformedMessage::NotAMessage(format!("it is {}, not an object", kind(message))))?;
        Ok(Self { object, path: String::new() })
    }

    /// Returns the fields of one record in the list `list`. Paths are relative to the record.
    pub fn of_record(record: &'a Value, list: &str) -> Result<Self, MalformedMessage> {
        let wrong =
            || MalformedMessage::bad_field(list, format!("holds {}, where an object is expected", kind(record)));
        Ok(Self { object: record.as_object().ok_or_else(wrong)?, path: String::new() })
    }

    /// Whether the field is present.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns the names of all fields, for the error about an unknown message form.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.object.keys().map(String::as_str).collect();
        truncate(&names.join(", "))
    }

    /// Returns the text of an optional field.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, MalformedMessage> {
        self.typed(name, "a text", Value::as_str)
    }

    /// Returns the text of a required field.
    pub fn required_text(&self, name: &str) -> Result<&'a str, MalformedMessage> {
        self.text(name)?.ok_or_else(|| self.missing(name, "a text"))
    }

    /// Returns the value of an optional boolean field; `false` if it is absent.
    pub fn flag(&self, name: &str) -> Result<bool, MalformedMessage> {
        Ok(self.typed(name, "true or false", Value::as_bool)?.unwrap_or_default())
    }

    /// Returns the list of a required field.
    pub fn required_list(&self, name: &str) -> Result<&'a [Value], MalformedMessage> {
        let list = self.typed(name, "a list", |value| value.as_array().map(Vec::as_slice))?;
        list.ok_or_else(|| self.missing(name, "a list"))
    }

    /// Returns the fields of a required nested object.
    pub fn required_object(&self, name: &str) -> Result<Self, MalformedMessage> {
        let object = self.typed(name, "an object", Value::as_object)?;
        let object = object.ok_or_else(|| self.missing(name, "an object"))?;
        Ok(Self { object, path: self.path_of(name) })
    }

    /// Returns the value of an optional field of any type.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Returns the error that the field is invalid for this reason.
    pub fn bad(&self, name: &str, reason: impl Into<String>) -> MalformedMessage {
        MalformedMessage::bad_field(self.path_of(name), reason)
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        convert: fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, MalformedMessage> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || self.bad(name, format!("is {}, where {expected} is expected", kind(value)));
        convert(value).map(Some).ok_or_else(wrong)
    }

    fn missing(&self, name: &str, expected: &str) -> MalformedMessage {
        self.bad(name, format!("is missing, where {expected} is expected"))
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
