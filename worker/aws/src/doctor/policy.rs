//! What the policy of a queue or topic lets others do, as far as can be read from it.

use serde_json::Value;

/// Whether the policy lets this service, in the name of this source, do this. Conditions about anything but the source count
/// as met.
pub(super) fn lets(policy: &str, service: &str, action: &str, source: &str) -> bool {
    let Ok(policy) = serde_json::from_str::<Value>(policy) else { return false };
    let allows = |statement: &Value| {
        statement["Effect"] == "Allow"
            && is_principal(&statement["Principal"], service)
            && texts(&statement["Action"]).any(|allowed| is_like(&action.to_lowercase(), &allowed.to_lowercase()))
            && has_source(&statement["Condition"], source)
    };
    match &policy["Statement"] {
        Value::Array(statements) => statements.iter().any(allows),
        statement => allows(statement),
    }
}

fn is_principal(principal: &Value, service: &str) -> bool {
    principal == "*"
        || texts(&principal["AWS"]).any(|name| name == "*")
        || texts(&principal["Service"]).any(|name| name == service)
}

fn has_source(condition: &Value, source: &str) -> bool {
    let operators = condition.as_object().into_iter().flatten();
    operators.flat_map(|(_, keys)| keys.as_object().into_iter().flatten()).all(|(key, values)| {
        !key.eq_ignore_ascii_case("aws:SourceArn") || texts(values).any(|pattern| is_like(source, pattern))
    })
}

/// One text, or all of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    value.as_str().into_iter().chain(list)
}

/// Whether the text fits a pattern in which `*` stands for anything, and `?` for one character.
fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = &pattern[1..];
            text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(&text[at..], rest))
        }
        Some(wanted) => {
            let mut rest = text.chars();
            rest.next().is_some_and(|c| wanted == '?' || c == wanted)
                && is_like(rest.as_str(), &pattern[wanted.len_utf8()..])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BUCKET: &str = "arn:aws:s3:::photos";

    fn check(statement: Value) -> bool {
        lets(&json!({ "Statement": [statement] }).to_string(), "s3.amazonaws.com", "sqs:SendMessage", BUCKET)
    }

    #[test]
    fn a_policy_is_read_as_services_read_it() {
        let s3 = json!({ "Service": "s3.amazonaws.com" });
        let of = |arn: &str| json!({ "ArnLike": { "aws:SourceArn": arn } });
        let send = "SQS:SendMessage";
        assert!(check(json!({ "Effect": "Allow", "Principal": s3, "Action": send, "Condition": of(BUCKET) })));
        assert!(check(
            json!({ "Effect": "Allow", "Principal": "*", "Action": ["sqs:*"], "Condition": of("arn:aws:s3:*:*:p*s") })
        ));
        assert!(check(json!({ "Effect": "Allow", "Principal": { "AWS": "*" }, "Action": "*" })));
        assert!(!check(
            json!({ "Effect": "Allow", "Principal": s3, "Action": send, "Condition": of("arn:aws:s3:::other") })
        ));
        assert!(!check(json!({ "Effect": "Deny", "Principal": s3, "Action": send })));
        assert!(!check(json!({ "Effect": "Allow", "Principal": { "Service": "sns.amazonaws.com" }, "Action": send })));
        assert!(!check(json!({ "Effect": "Allow", "Principal": s3, "Action": "sqs:Receive*" })));
        assert!(!lets("nonsense", "s3.amazonaws.com", "sqs:SendMessage", BUCKET));
    }
}
