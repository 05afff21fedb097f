//! The limits of DynamoDB that the emulator does not enforce: requests beyond them are refused as DynamoDB refuses them.
//!
//! See "Quotas and constraints" in the developer guide of DynamoDB, and `TransactWriteItems` in its API reference.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::proxy::{CannedResponse, cancelled_transaction_response, validation_response};

/// The maximum number of actions of a transaction and of keys of a batch read.
const MAX_ACTIONS: usize = 100;
/// The maximum size of a transaction's items.
const MAX_TRANSACTION_BYTES: usize = 4 << 20;
/// The maximum size of an item, names included.
const MAX_ITEM_BYTES: usize = 400 << 10;
/// The maximum length of an expression.
const MAX_EXPRESSION_BYTES: usize = 4 << 10;
/// The maximum number of operators and functions in an expression.
const MAX_OPERATORS: usize = 300;
/// The maximum size of all names and values that the expressions of one action refer to.
const MAX_SUBSTITUTION_BYTES: usize = 2 << 20;
/// The maximum length of a placeholder of a name or value.
const MAX_PLACEHOLDER_BYTES: usize = 255;

/// Returns the response of DynamoDB to a request beyond its limits; `None` for a request within them.
pub fn refusal(target: &str, body: &[u8]) -> Option<CannedResponse> {
    let operation = target.strip_prefix("DynamoDB_20120810.")?;
    let request: Value = serde_json::from_slice(body).ok()?;
    let invalid = match operation {
        "TransactWriteItems" => {
            let actions: Vec<&Value> = request["TransactItems"].as_array()?.iter().filter_map(only_value).collect();
            let too_large = actions.iter().position(|action| item_bytes(&written(action)) > MAX_ITEM_BYTES);
            if let Some(position) = too_large {
                let message = "Item size to update has exceeded the maximum allowed size";
                return Some(cancelled_transaction_response(body, position, "ValidationError", message));
            }
            refused_transaction(&actions)
        }
        "TransactGetItems" => (request["TransactItems"].as_array()?.len() > MAX_ACTIONS).then(too_many_items),
        "BatchGetItem" => {
            let keys = request["RequestItems"].as_object()?.values().filter_map(|table| table["Keys"].as_array());
            (keys.map(Vec::len).sum::<usize>() > MAX_ACTIONS)
                .then(|| "Too many items requested for the BatchGetItem call".to_owned())
        }
        "PutItem" if item_bytes(&request["Item"]) > MAX_ITEM_BYTES => {
            Some("Item size has exceeded the maximum allowed size".to_owned())
        }
        _ => refused_action(&request),
    };
    invalid.map(|message| validation_response(&message))
}

fn refused_transaction(actions: &[&Value]) -> Option<String> {
    if actions.len() > MAX_ACTIONS {
        return Some(too_many_items());
    }
    let mut keys = BTreeSet::new();
    let mut bytes = 0;
    for action in actions {
        let key = if action["Key"].is_object() { &action["Key"] } else { &action["Item"] };
        if !keys.insert(format!("{}/{}/{}", action["TableName"], key["PK"], key["SK"])) {
            return Some("Transaction request cannot include multiple operations on one item".to_owned());
        }
        bytes += item_bytes(&written(action));
        if let Some(refused) = refused_action(action) {
            return Some(refused);
        }
    }
    (bytes > MAX_TRANSACTION_BYTES).then(|| "The aggregated size of all items exceeded the 4 MB limit".to_owned())
}

fn too_many_items() -> String {
    "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100".to_owned()
}

/// Checks the expressions of an action of a transaction, or of a request for a single item.
fn refused_action(action: &Value) -> Option<String> {
    for name in ["UpdateExpression", "ConditionExpression", "KeyConditionExpression", "FilterExpression"] {
        let Some(expression) = action[name].as_str() else { continue };
        if expression.len() > MAX_EXPRESSION_BYTES {
            return Some(format!("Invalid {name}: Expression size has exceeded the maximum allowed size"));
        }
        if operators(expression, name == "UpdateExpression") > MAX_OPERATORS {
            return Some(format!(
                "Invalid {name}: The expression contains too many operators, exceeded {MAX_OPERATORS}"
            ));
        }
    }
    let names = action["ExpressionAttributeNames"].as_object();
    let values = action["ExpressionAttributeValues"].as_object();
    let placeholders = names.into_iter().chain(values).flat_map(Map::keys);
    if placeholders.map(String::len).any(|length| length > MAX_PLACEHOLDER_BYTES) {
        return Some("A placeholder has exceeded the maximum allowed length".to_owned());
    }
    let named = names.into_iter().flatten().map(|(alias, name)| alias.len() + name.as_str().map_or(0, str::len));
    let valued = values.into_iter().flatten().map(|(alias, value)| alias.len() + value_bytes(value));
    (named.chain(valued).sum::<usize>() > MAX_SUBSTITUTION_BYTES)
        .then(|| "The size of the substitution variables has exceeded the maximum allowed size".to_owned())
}

/// Counts operators and functions. The `=` of an update assigns and is no operator.
fn operators(expression: &str, update: bool) -> usize {
    let words = ["AND", "OR", "NOT", "IN", "BETWEEN"];
    let symbols: &[&str] = if update { &["+", "-"] } else { &["=", "<>", "<", "<=", ">", ">="] };
    let functions = expression.match_indices('(').filter(|(at, _)| follows_name(expression, *at)).count();
    let tokens = expression.split([' ', '(', ')', ',']);
    functions + tokens.filter(|token| words.contains(token) || symbols.contains(token)).count()
}

/// Returns whether a name stands directly before this position, so that the bracket there is that of a function.
fn follows_name(expression: &str, at: usize) -> bool {
    expression[..at].ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
}

/// Returns what an action of a transaction writes, as far as the request tells.
fn written(action: &Value) -> Value {
    if action["Item"].is_object() {
        return action["Item"].clone();
    }
    let mut item = action["Key"].as_object().cloned().unwrap_or_default();
    if action["UpdateExpression"].is_string() {
        item.extend(action["ExpressionAttributeValues"].as_object().cloned().unwrap_or_default());
    }
    Value::Object(item)
}

/// Returns the size of an item by the rules of DynamoDB.
fn item_bytes(item: &Value) -> usize {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| name.len() + value_bytes(value)).sum()
}

/// Returns the size of an attribute value such as `{"S": "text"}`.
fn value_bytes(value: &Value) -> usize {
    let Some((kind, content)) = value.as_object().and_then(|value| value.iter().next()) else { return 0 };
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let number = |value: &Value| text(value).div_ceil(2) + 1;
    let binary = |value: &Value| text(value) / 4 * 3;
    let each = |size: &dyn Fn(&Value) -> usize| content.as_array().into_iter().flatten().map(size).sum::<usize>();
    match kind.as_str() {
        "S" => text(content),
        "N" => number(content),
        "B" => binary(content),
        "SS" => each(&text),
        "NS" => each(&number),
        "BS" => each(&binary),
        "L" => 3 + each(&|value| 1 + value_bytes(value)),
        "M" => 3 + item_bytes(content) + content.as_object().map_or(0, Map::len),
        _ => 1,
    }
}

/// Returns the action of a `TransactWriteItem`, such as the value of `{"Put": {...}}`.
fn only_value(item: &Value) -> Option<&Value> {
    item.as_object()?.values().next()
}
