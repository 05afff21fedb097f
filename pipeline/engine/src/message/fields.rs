//! The fields of a message, read by name. What is missing or of the wrong type is told by its path.

use serde_json::{Map, Value};

use super::malformed::{Malformed, cut};

/// The fields of one JSON object. `null` is the same as absent, and what nobody asks for does not matter.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// The fields of the message itself.
    pub fn of_message(message: &'a Value) -> Result<Self, Malformed> {
        let object = message.as_object();
        let object = object.ok_or_else(|| Malformed::NotAMessage(format!("it is {}, not an object", kind(message))))?;
        Ok(Self { object, path: String::new() })
    }

    /// The fields of one record in the list `list`; paths are those within the record.
    pub fn of_record(record: &'a Value, list: &str) -> Result<Self, Malformed> {
        let wrong = || Malformed::bad_field(list, format!("holds {}, where an object is expected", kind(record)));
        Ok(Self { object: record.as_object().ok_or_else(wrong)?, path: String::new() })
    }

    /// Whether the field is there.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The names of all fields, for whoever must find out what the message is.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.object.keys().map(String::as_str).collect();
        cut(&names.join(", "))
    }

    /// The text in the field, if it is there.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Malformed> {
        self.typed(name, "a text", Value::as_str)
    }

    /// The text in the field, which must be there.
    pub fn required_text(&self, name: &str) -> Result<&'a str, Malformed> {
        self.text(name)?.ok_or_else(|| self.missing(name, "a text"))
    }

    /// Whether the field says `true`; it does not if it is absent.
    pub fn flag(&self, name: &str) -> Result<bool, Malformed> {
        Ok(self.typed(name, "true or false", Value::as_bool)?.unwrap_or_default())
    }

    /// The list in the field, which must be there.
    pub fn required_list(&self, name: &str) -> Result<&'a [Value], Malformed> {
        let list = self.typed(name, "a list", |value| value.as_array().map(Vec::as_slice))?;
        list.ok_or_else(|| self.missing(name, "a list"))
    }

    /// The fields of the object in the field, which must be there.
    pub fn required_object(&self, name: &str) -> Result<Self, Malformed> {
        let object = self.typed(name, "an object", Value::as_object)?;
        let object = object.ok_or_else(|| self.missing(name, "an object"))?;
        Ok(Self { object, path: self.path_of(name) })
    }

    /// The value in the field, whatever its type.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A complaint about the field.
    pub fn bad(&self, name: &str, reason: impl Into<String>) -> Malformed {
        Malformed::bad_field(self.path_of(name), reason)
    }

    fn typed<T>(&self, name: &str, expected: &str, read: fn(&'a Value) -> Option<T>) -> Result<Option<T>, Malformed> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || self.bad(name, format!("is {}, where {expected} is expected", kind(value)));
        read(value).map(Some).ok_or_else(wrong)
    }

    fn missing(&self, name: &str, expected: &str) -> Malformed {
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
