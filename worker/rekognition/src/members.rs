//! Reading a request member by member, as strictly as the service's model.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use crate::refusal::{Kind, Refusal};

type Read<T> = Result<T, Refusal>;

/// What a text may be.
pub struct Text {
    pub min: usize,
    pub max: usize,
    /// As the service's answers name it.
    pub pattern: &'static str,
    pub fits: fn(&str) -> bool,
}

/// The members of a structure that nobody has read yet.
pub struct Members {
    path: String,
    left: Map<String, Value>,
}

impl Members {
    /// Those of a whole request.
    pub fn of(body: &[u8]) -> Read<Self> {
        let value = serde_json::from_slice(body).map_err(|_| unreadable("the body is not JSON"))?;
        Self::within(value, String::new())
    }

    fn within(value: Value, path: String) -> Read<Self> {
        match value {
            Value::Object(left) => Ok(Self { path, left }),
            other => Err(mistyped(&other, "a structure")),
        }
    }

    /// A member as the service writes it: the path to it, each name with a small initial.
    fn path(&self, name: &str) -> String {
        let mut letters = name.chars();
        let initial = letters.next().map(|letter| letter.to_ascii_lowercase());
        let name: String = initial.into_iter().chain(letters).collect();
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// What must be there.
    pub fn required<T>(&self, name: &str, read: Option<T>) -> Read<T> {
        read.ok_or_else(|| Refusal::constraint("null", &self.path(name), "Member must not be null"))
    }

    pub fn text(&mut self, name: &str, rule: &Text) -> Read<Option<String>> {
        let path = self.path(name);
        self.take(name).map(|value| text(value, &path, rule)).transpose()
    }

    pub fn integer(&mut self, name: &str, min: i64, max: i64) -> Read<Option<i64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
        let number = number.ok_or_else(|| mistyped(&value, "an Integer"))?;
        within(number, min, max, &number.to_string(), &self.path(name)).map(Some)
    }

    pub fn percent(&mut self, name: &str) -> Read<Option<f32>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| mistyped(&value, "a Float"))?;
        within(number, 0.0, 100.0, &value.to_string(), &self.path(name)).map(|number| Some(number as f32))
    }

    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Read<Option<T>> {
        let path = self.path(name);
        self.take(name).map(|value| choice(value, &path, choices)).transpose()
    }

    pub fn choices<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Read<Option<Vec<T>>> {
        let read = |(path, value): (String, Value)| choice(value, &path, choices);
        self.list(name)?.map(|list| list.into_iter().map(read).collect()).transpose()
    }

    /// A list of so many texts.
    pub fn texts(&mut self, name: &str, min: usize, max: usize, rule: &Text) -> Read<Option<Vec<String>>> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        length(list.len(), min, max, "'[...]'", &self.path(name))?;
        list.into_iter().map(|(path, value)| text(value, &path, rule)).collect::<Read<_>>().map(Some)
    }

    fn list(&mut self, name: &str) -> Read<Option<Vec<(String, Value)>>> {
        let path = self.path(name);
        let numbered = |list: Vec<Value>| {
            (1..).zip(list).map(|(place, value)| (format!("{path}.{place}.member"), value)).collect()
        };
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(numbered(list))),
            Some(other) => Err(mistyped(&other, "a list")),
        }
    }

    /// A map of at most so many texts to texts.
    pub fn map(&mut self, name: &str, max: usize, key: &Text, value: &Text) -> Read<Vec<(String, String)>> {
        let Some(map) = self.structure(name)? else { return Ok(Vec::new()) };
        length(map.left.len(), 0, max, "'{...}'", &map.path)?;
        let read = |(k, v): (String, Value)| {
            let within = format!("{}.{k}.member", map.path);
            Ok((text(k.into(), &map.path, key)?, text(v, &within, value)?))
        };
        map.left.into_iter().map(read).collect()
    }

    pub fn blob(&mut self, name: &str, max: usize) -> Read<Option<Vec<u8>>> {
        let bytes = match self.take(name) {
            None => return Ok(None),
            Some(Value::String(text)) => {
                BASE64_STANDARD.decode(text).map_err(|_| unreadable("a blob is not base64"))?
            }
            Some(other) => return Err(mistyped(&other, "a Blob")),
        };
        length(bytes.len(), 1, max, &format!("'[{} bytes]'", bytes.len()), &self.path(name))?;
        Ok(Some(bytes))
    }

    pub fn structure(&mut self, name: &str) -> Read<Option<Self>> {
        let path = self.path(name);
        self.take(name).map(|value| Self::within(value, path)).transpose()
    }

    /// Refuses what nobody has read. The service would overlook it; here it is somebody's slip of the pen.
    pub fn end(self) -> Read<()> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(Refusal::new(Kind::Validation, format!("unknown member '{}'", self.path(name)))),
        }
    }
}

fn text(value: Value, path: &str, rule: &Text) -> Read<String> {
    let Value::String(text) = value else { return Err(mistyped(&value, "a String")) };
    let quoted = format!("'{text}'");
    length(text.chars().count(), rule.min, rule.max, &quoted, path)?;
    if (rule.fits)(&text) {
        return Ok(text);
    }
    let rule = format!("Member must satisfy regular expression pattern: {}", rule.pattern);
    Err(Refusal::constraint(&quoted, path, &rule))
}

fn choice<T: Copy>(value: Value, path: &str, choices: &[(&str, T)]) -> Read<T> {
    let Value::String(text) = value else { return Err(mistyped(&value, "a String")) };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*choice);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let rule = format!("Member must satisfy enum value set: [{}]", names.join(", "));
    Err(Refusal::constraint(&format!("'{text}'"), path, &rule))
}

fn within<T: PartialOrd + std::fmt::Display>(number: T, min: T, max: T, shown: &str, path: &str) -> Read<T> {
    let wrong = |rule: &str| Err(Refusal::constraint(&format!("'{shown}'"), path, rule));
    if number < min {
        return wrong(&format!("Member must have value greater than or equal to {min}"));
    }
    if number > max {
        return wrong(&format!("Member must have value less than or equal to {max}"));
    }
    Ok(number)
}

fn length(length: usize, min: usize, max: usize, shown: &str, path: &str) -> Read<()> {
    if length < min {
        return Err(Refusal::constraint(
            shown,
            path,
            &format!("Member must have length greater than or equal to {min}"),
        ));
    }
    if length > max {
        return Err(Refusal::constraint(shown, path, &format!("Member must have length less than or equal to {max}")));
    }
    Ok(())
}

fn unreadable(why: &str) -> Refusal {
    Refusal::new(Kind::Serialization, why)
}

fn mistyped(value: &Value, wanted: &str) -> Refusal {
    let kind = match value {
        Value::Null => "NULL_VALUE",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::String(_) => "STRING_VALUE",
        Value::Array(_) => "Start of list",
        Value::Object(_) => "Start of structure",
    };
    Refusal::new(Kind::Serialization, format!("{kind} can not be converted to {wanted}"))
}
