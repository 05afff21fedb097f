//! Reads the members of a request and validates them by the constraints of the API model.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use crate::api_error::{ApiError, ErrorCode};

type Result<T> = std::result::Result<T, ApiError>;

/// The constraints of a string.
pub struct StringRule {
    pub min: usize,
    pub max: usize,
    /// The pattern in error messages.
    pub pattern: &'static str,
    /// Returns whether a string matches the pattern.
    pub is_match: fn(&str) -> bool,
}

/// The members of a structure that have not been read yet.
pub struct MemberReader {
    path: String,
    unread: Map<String, Value>,
}

impl MemberReader {
    /// Parses the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let value = serde_json::from_slice(body).map_err(|_| malformed("request body is not valid JSON"))?;
        Self::from_value(value, String::new())
    }

    fn from_value(value: Value, path: String) -> Result<Self> {
        match value {
            Value::Object(unread) => Ok(Self { path, unread }),
            other => Err(wrong_type(&other, "a structure")),
        }
    }

    /// Returns the path of a member as in the messages of the service: each name starts in lower case.
    fn path(&self, name: &str) -> String {
        let mut letters = name.chars();
        let initial = letters.next().map(|letter| letter.to_ascii_lowercase());
        let name: String = initial.into_iter().chain(letters).collect();
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.unread.remove(name).filter(|value| !value.is_null())
    }

    /// Returns the value of a required member.
    pub fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| ApiError::constraint("null", &self.path(name), "Member must not be null"))
    }

    pub fn string(&mut self, name: &str, rule: &StringRule) -> Result<Option<String>> {
        let path = self.path(name);
        self.take(name).map(|value| string(value, &path, rule)).transpose()
    }

    pub fn integer(&mut self, name: &str, min: i64, max: i64) -> Result<Option<i64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
        let number = number.ok_or_else(|| wrong_type(&value, "an Integer"))?;
        check_range(number, min, max, &number.to_string(), &self.path(name)).map(Some)
    }

    pub fn percent(&mut self, name: &str) -> Result<Option<f32>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| wrong_type(&value, "a Float"))?;
        check_range(number, 0.0, 100.0, &value.to_string(), &self.path(name)).map(|number| Some(number as f32))
    }

    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let path = self.path(name);
        self.take(name).map(|value| choice(value, &path, choices)).transpose()
    }

    pub fn choices<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<Option<Vec<T>>> {
        let read = |(path, value): (String, Value)| choice(value, &path, choices);
        self.list(name)?.map(|list| list.into_iter().map(read).collect()).transpose()
    }

    /// Reads a list of `min` to `max` strings.
    pub fn strings(&mut self, name: &str, min: usize, max: usize, rule: &StringRule) -> Result<Option<Vec<String>>> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        check_length(list.len(), min, max, "'[...]'", &self.path(name))?;
        list.into_iter().map(|(path, value)| string(value, &path, rule)).collect::<Result<_>>().map(Some)
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<(String, Value)>>> {
        let path = self.path(name);
        let numbered = |list: Vec<Value>| {
            (1..).zip(list).map(|(index, value)| (format!("{path}.{index}.member"), value)).collect()
        };
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(numbered(list))),
            Some(other) => Err(wrong_type(&other, "a list")),
        }
    }

    /// Reads a map of at most `max` strings.
    pub fn map(
        &mut self,
        name: &str,
        max: usize,
        key: &StringRule,
        value: &StringRule,
    ) -> Result<Vec<(String, String)>> {
        let Some(map) = self.structure(name)? else { return Ok(Vec::new()) };
        check_length(map.unread.len(), 0, max, "'{...}'", &map.path)?;
        let read = |(k, v): (String, Value)| {
            let path = format!("{}.{k}.member", map.path);
            Ok((string(k.into(), &map.path, key)?, string(v, &path, value)?))
        };
        map.unread.into_iter().map(read).collect()
    }

    pub fn blob(&mut self, name: &str, max: usize) -> Result<Option<Vec<u8>>> {
        let bytes = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(text)) => {
                BASE64_STANDARD.decode(text).map_err(|_| malformed("blob is not valid base64"))?
            }
            Some(other) => return Err(wrong_type(&other, "a Blob")),
        };
        check_length(bytes.len(), 1, max, &format!("'[{} bytes]'", bytes.len()), &self.path(name))?;
        Ok(Some(bytes))
    }

    pub fn structure(&mut self, name: &str) -> Result<Option<Self>> {
        let path = self.path(name);
        self.take(name).map(|value| Self::from_value(value, path)).transpose()
    }

    /// Rejects unread members. The service ignores them; here they reveal misspelled names.
    pub fn finish(self) -> Result<()> {
        match self.unread.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::new(ErrorCode::Validation, format!("unknown member '{}'", self.path(name)))),
        }
    }
}

fn string(value: Value, path: &str, rule: &StringRule) -> Result<String> {
    let Value::String(text) = value else { return Err(wrong_type(&value, "a String")) };
    let quoted = format!("'{text}'");
    check_length(text.chars().count(), rule.min, rule.max, &quoted, path)?;
    if (rule.is_match)(&text) {
        return Ok(text);
    }
    let rule = format!("Member must satisfy regular expression pattern: {}", rule.pattern);
    Err(ApiError::constraint(&quoted, path, &rule))
}

fn choice<T: Copy>(value: Value, path: &str, choices: &[(&str, T)]) -> Result<T> {
    let Value::String(text) = value else { return Err(wrong_type(&value, "a String")) };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*choice);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let rule = format!("Member must satisfy enum value set: [{}]", names.join(", "));
    Err(ApiError::constraint(&format!("'{text}'"), path, &rule))
}

fn check_range<T: PartialOrd + std::fmt::Display>(number: T, min: T, max: T, shown: &str, path: &str) -> Result<T> {
    let error = |rule: &str| Err(ApiError::constraint(&format!("'{shown}'"), path, rule));
    if number < min {
        return error(&format!("Member must have value greater than or equal to {min}"));
    }
    if number > max {
        return error(&format!("Member must have value less than or equal to {max}"));
    }
    Ok(number)
}

fn check_length(length: usize, min: usize, max: usize, shown: &str, path: &str) -> Result<()> {
    if length < min {
        return Err(ApiError::constraint(
            shown,
            path,
            &format!("Member must have length greater than or equal to {min}"),
        ));
    }
    if length > max {
        return Err(ApiError::constraint(shown, path, &format!("Member must have length less than or equal to {max}")));
    }
    Ok(())
}

fn malformed(reason: &str) -> ApiError {
    ApiError::new(ErrorCode::Serialization, reason)
}

fn wrong_type(value: &Value, expected: &str) -> ApiError {
    let found = match value {
        Value::Null => "NULL_VALUE",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::String(_) => "STRING_VALUE",
        Value::Array(_) => "Start of list",
        Value::Object(_) => "Start of structure",
    };
    ApiError::new(ErrorCode::Serialization, format!("{found} can not be converted to {expected}"))
}
