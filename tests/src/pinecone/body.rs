//! What a request says, member by member. What is left over at the end is refused.

use serde_json::{Map, Value};

use super::refusal::Refusal;

/// An object whose members are taken one by one.
pub(super) struct Body(Map<String, Value>);

impl Body {
    /// Reads a request.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        match serde_json::from_slice(bytes) {
            Ok(value) => Self::of(value),
            Err(error) => Err(Refusal::argument(format!("Invalid JSON: line {}", error.line()))),
        }
    }

    /// Reads an object.
    pub fn of(value: Value) -> Result<Self, Refusal> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Refusal::argument("Root element must be a message.")),
        }
    }

    /// The member, as it is.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "TYPE_STRING")),
        }
    }

    /// Yes or no; no where it is not said.
    pub fn flag(&mut self, name: &str) -> Result<bool, Refusal> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(wrong(name, "TYPE_BOOL")),
        }
    }

    /// A whole number.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| wrong(name, "TYPE_UINT32")),
        }
    }

    /// Texts.
    pub fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().map(Some).ok_or_else(|| wrong(name, "TYPE_STRING"))
    }

    /// Numbers, as floating point of 32 bits.
    pub fn numbers(&mut self, name: &str) -> Result<Option<Vec<f32>>, Refusal> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let numbers = list.iter().map(|number| number.as_f64().map(|number| number as f32).filter(|n| n.is_finite()));
        numbers.collect::<Option<_>>().map(Some).ok_or_else(|| wrong(name, "TYPE_FLOAT"))
    }

    /// Anything.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(wrong(name, "a list")),
        }
    }

    /// Nothing else is said.
    pub fn finish(self) -> Result<(), Refusal> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Refusal::argument(format!("{name}: Cannot find field."))),
        }
    }
}

fn wrong(name: &str, kind: &str) -> Refusal {
    Refusal::argument(format!("Invalid value at '{name}' ({kind})"))
}

/// The parameters of an address, in order.
pub(super) fn parameters(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    });
    decoded.collect::<Option<_>>().ok_or_else(|| Refusal::argument("Invalid query string"))
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
