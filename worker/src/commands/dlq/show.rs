//! `sparks dlq show`, and a letter in full.

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_engine::{DeadLetter, DeadLetters, MessageId};

use crate::output::{Output, harmless};

/// Shows one letter.
pub async fn run(queue: &dyn DeadLetters, id: String, output: &mut Output) -> anyhow::Result<ExitCode> {
    let Some(letter) = queue.letter(&MessageId(id.clone())).await? else {
        anyhow::bail!("there is no dead letter {id}: see `sparks dlq ls`");
    };
    if output.is_json() {
        output.json(&whole(&letter))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.columns([
        vec!["id".into(), letter.id.0.clone()],
        vec!["cause".into(), harmless(&letter.cause)],
        vec!["reason".into(), harmless(&letter.reason)],
        vec!["sent".into(), letter.sent.to_string()],
        vec!["died".into(), letter.died.to_string()],
        vec!["receives".into(), letter.receives.to_string()],
    ])?;
    output.line("")?;
    match serde_json::from_str::<Value>(&letter.body) {
        Ok(body) => output.pretty(&body)?,
        Err(_) => output.line(harmless(&letter.body))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything about a letter, its body as it came and, where it is JSON, as what it says.
pub fn whole(letter: &DeadLetter) -> Value {
    let mut whole = json!({
        "id": letter.id.0,
        "cause": letter.cause,
        "reason": letter.reason,
        "sent": letter.sent,
        "died": letter.died,
        "receives": letter.receives,
        "body": letter.body,
    });
    if let Ok(message) = serde_json::from_str::<Value>(&letter.body) {
        whole["message"] = message;
    }
    whole
}
