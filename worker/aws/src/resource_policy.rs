//! Access policies of queues and topics (resource-based policies in IAM's language).

use serde_json::{Value, json};

/// Returns whether the policy allows this service to perform the action on behalf of this source. Conditions other than
/// `aws:SourceArn` count as met.
pub(crate) fn allows(policy: &str, service: &str, action: &str, source: &str) -> bool {
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

/// Returns the policy with a statement added that allows the action to this source; none if it has that statement already.
pub(crate) fn policy_allowing(
    policy: Option<&str>,
    action: &str,
    resource: &str,
    service: &str,
    source: &str,
) -> Option<String> {
    let mut policy: Value = policy
        .and_then(|policy| serde_json::from_str(policy).ok())
        .unwrap_or_else(|| json!({ "Version": "2012-10-17", "Statement": [] }));
    let statement = json!({
        "Effect": "Allow",
        "Principal": { "Service": service },
        "Action": action,
        "Resource": resource,
        "Condition": { "ArnLike": { "aws:SourceArn": source } },
    });
    let statements = policy.as_object_mut()?.entry("Statement").or_insert_with(|| json!([]));
    // IAM also accepts a single statement without a list.
    if statements.is_object() {
        *statements = json!([statements.take()]);
    }
    let statements = statements.as_array_mut()?;
    if statements.contains(&statement) {
        return None;
    }
    statements.push(statement);
    Some(policy.to_string())
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

/// Returns the texts of a value that is a text or a list of texts.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    value.as_str().into_iter().chain(list)
}

/// Returns whether the text matches a pattern in which `*` stands for any characters and `?` for one.
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
    use super::*;

    const BUCKET: &str = "arn:aws:s3:::photos";

    fn check(statement: Value) -> bool {
        allows(&json!({ "Statement": [statement] }).to_string(), "s3.amazonaws.com", "sqs:SendMessage", BUCKET)
    }

    #[test]
    fn a_policy_is_evaluated_as_iam_does() {
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
        assert!(!allows("nonsense", "s3.amazonaws.com", "sqs:SendMessage", BUCKET));
    }

    #[test]
    fn existing_statements_are_kept_and_a_source_is_added_once() {
        let existing = json!({ "Version": "2012-10-17", "Statement": [{ "Sid": "existing" }] }).to_string();
        let first = policy_allowing(Some(&existing), "sqs:SendMessage", "q", "s3.amazonaws.com", "b")
            .expect("a policy with one more statement");
        let statements = serde_json::from_str::<Value>(&first).expect("JSON")["Statement"].clone();
        assert_eq!(statements.as_array().map(Vec::len), Some(2), "{first}");
        assert_eq!(statements[0]["Sid"], "existing");
        assert_eq!(policy_allowing(Some(&first), "sqs:SendMessage", "q", "s3.amazonaws.com", "b"), None);
        assert!(policy_allowing(None, "sqs:SendMessage", "q", "sns.amazonaws.com", "t").is_some());
    }

    #[test]
    fn a_single_statement_without_a_list_is_kept() {
        let existing = json!({ "Version": "2012-10-17", "Statement": { "Sid": "existing" } }).to_string();
        let both = policy_allowing(Some(&existing), "sqs:SendMessage", "q", "s3.amazonaws.com", "b")
            .expect("a policy with one more statement");
        let statements = serde_json::from_str::<Value>(&both).expect("JSON")["Statement"].clone();
        let found = (statements.as_array().map(Vec::len), &statements[0]["Sid"]);
        assert_eq!(found, (Some(2), &json!("existing")), "{both}");
        let ours = json!({ "Statement": statements[1] }).to_string();
        assert_eq!(policy_allowing(Some(&ours), "sqs:SendMessage", "q", "s3.amazonaws.com", "b"), None);
    }
}
