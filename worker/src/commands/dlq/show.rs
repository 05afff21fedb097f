//! `sparks dlq show`, and the JSON of a dead letter.

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_engine::{DeadLetter, DeadLetters, MessageId};

use crate::output::{Output, sanitize};

/// Prints one dead letter.
pub async fn run(queue: &dyn DeadLetters, id: String, output: &mut Output) -> anyhow::Result<ExitCode> {
    let Some(letter) = queue.letter(&MessageId(id.clone())).await? else {
        anyhow::bail!("dead letter {id} does not exist: see `sparks dlq ls`");
    };
    if output.is_json() {
        output.json(&to_json(&letter))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.columns([
        vec!["id".into(), letter.id.0.clone()],
        vec!["cause".into(), sanitize(&letter.cause)],
        vec!["reason".into(), sanitize(&letter.reason)],
        vec!["sent".into(), letter.sent.to_string()],
        vec!["died".into(), letter.died.to_string()],
        vec!["receives".into(), letter.receives.to_string()],
    ])?;
    output.line("")?;
    match serde_json::from_str::<Value>(&letter.body) {
        Ok(body) => output.pretty(&body)?,
        Err(_) => output.line(sanitize(&letter.body))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns all fields of a letter: the body as text and, if it is JSON, also parsed.
pub fn to_json(letter: &DeadLetter) -> Value {
    let mut value = json!({
        "id": letter.id.0,
        "cause": letter.cause,
        "reason": letter.reason,
        "sent": letter.sent,
        "died": letter.died,
        "receives": letter.receives,
        "body": letter.body,
    });
    if let Ok(message) = serde_json::from_str::<Value>(&letter.body) {
        value["message"] = message;
    }
    value
}
