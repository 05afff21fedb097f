//! Conversion between DynamoDB attribute values and JSON.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Number, Value};
use sparks_domain::{Attributes, Item, Key};
use sparks_engine::StoreError;

/// An item with its key attributes.
pub(crate) type Fields = HashMap<String, AttributeValue>;

/// Converts JSON to an attribute value. Numbers keep their digits.
pub(crate) fn to_dynamo(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(truth) => AttributeValue::Bool(*truth),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(values) => AttributeValue::L(values.iter().map(to_dynamo).collect()),
        Value::Object(fields) => {
            AttributeValue::M(fields.iter().map(|(name, value)| (name.clone(), to_dynamo(value))).collect())
        }
    }
}

/// Converts an attribute value to JSON. Sets, which only the platform writes, become lists, and bytes hexadecimal text.
pub(crate) fn to_json(value: &AttributeValue) -> Value {
    let bytes = |blob: &aws_sdk_dynamodb::primitives::Blob| -> Value {
        blob.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    };
    match value {
        AttributeValue::S(text) => Value::String(text.clone()),
        AttributeValue::N(number) => json_number(number),
        AttributeValue::Bool(truth) => Value::Bool(*truth),
        AttributeValue::L(values) => values.iter().map(to_json).collect(),
        AttributeValue::M(fields) => fields.iter().map(|(name, value)| (name.clone(), to_json(value))).collect(),
        AttributeValue::Ss(texts) => texts.iter().map(|text| Value::from(text.as_str())).collect(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|number| json_number(number)).collect(),
        AttributeValue::B(blob) => bytes(blob),
        AttributeValue::Bs(blobs) => blobs.iter().map(bytes).collect(),
        _ => Value::Null,
    }
}

fn json_number(digits: &str) -> Value {
    digits.parse::<Number>().map_or_else(|_| Value::String(digits.to_owned()), Value::Number)
}

/// Returns the attributes without the key, sorted by name.
pub(crate) fn attributes(fields: &Fields) -> Attributes {
    let ours = fields.iter().filter(|(name, _)| !["PK", "SK"].contains(&name.as_str()));
    let mut named: Vec<_> = ours.map(|(name, value)| (name.clone(), to_json(value))).collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named.into_iter().collect()
}

/// Converts an item to a row.
pub(crate) fn item(fields: &Fields) -> Result<Item, StoreError> {
    Ok(Item { key: key(fields)?, attributes: attributes(fields) })
}

/// Returns the key of an item.
pub(crate) fn key(fields: &Fields) -> Result<Key, StoreError> {
    Ok(Key::new(text(fields, "PK")?, text(fields, "SK")?))
}

/// Converts a row to an item.
pub(crate) fn fields(key: &Key, attributes: &Attributes) -> Fields {
    let mut fields = key_fields(&key.pk, &key.sk);
    fields.extend(attributes.iter().map(|(name, value)| (name.clone(), to_dynamo(value))));
    fields
}

/// Returns the key attributes of an item.
pub(crate) fn key_fields(pk: &str, sk: &str) -> Fields {
    HashMap::from([("PK".to_owned(), s(pk)), ("SK".to_owned(), s(sk))])
}

/// Returns a string value.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// Returns a number value.
pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Returns a required string attribute.
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, StoreError> {
    let found = fields.get(name).and_then(|value| value.as_s().ok());
    found.map(String::as_str).ok_or_else(|| StoreError::Unreadable(format!("item without the string attribute {name}")))
}

/// Returns a whole number attribute; 0 if it is missing.
pub(crate) fn number(fields: &Fields, name: &str) -> Result<u64, StoreError> {
    let Some(value) = fields.get(name) else { return Ok(0) };
    let number = value.as_n().ok().and_then(|digits| whole_number(digits));
    number.ok_or_else(|| StoreError::Unreadable(format!("{name} is {}, not a whole number", to_json(value))))
}

/// Parses a whole number, also one written as a fraction (`7.0`, `7E0`).
fn whole_number(digits: &str) -> Option<u64> {
    let fraction = || digits.parse::<f64>().ok().filter(|n| *n >= 0.0 && *n < 9e15 && n.fract() == 0.0);
    digits.parse().ok().or_else(|| fraction().map(|n| n as u64))
}
