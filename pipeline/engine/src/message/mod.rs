//! Parsing of queue messages into typed requests.
//!
//! The platform and AWS send several message forms, which are told apart by their fields. Each is parsed into a [`Request`] whose
//! keys and identifiers are validated, so that later stages need no further checks.

mod envelope;
mod event_bridge;
mod fields;
mod key;
mod malformed;
mod notification;
mod object_event;
mod platform_message;
mod request;

use std::borrow::Cow;

use serde_json::Value;

use self::{envelope::EnvelopeContent, fields::Fields};

pub use self::{
    malformed::MalformedMessage,
    notification::upload_event,
    request::{DeleteRef, FinishedVariants, PhotoRef, ProfileRef, RemovedRef, Request},
};

/// SNS wraps a message once, and forwarding from topic to queue to topic wraps it again. No sensible setup nests deeper.
const MAX_ENVELOPES: usize = 3;

/// Parses a message into one request per record. Iterative, because the sender controls the nesting depth of envelopes.
pub fn parse_message(body: &str, bucket: &str) -> Result<Vec<Request>, MalformedMessage> {
    let mut text = Cow::Borrowed(body);
    for depth in 0..=MAX_ENVELOPES {
        let message = parse_json(&text, depth)?;
        let fields = Fields::of_message(&message)?;
        match envelope::open(&fields)? {
            Some(EnvelopeContent::Message(message)) => text = Cow::Owned(message.to_owned()),
            Some(EnvelopeContent::Control { reason }) => return Ok(vec![Request::Ignored { reason }]),
            None => return parse_content(&fields, bucket),
        }
    }
    Err(MalformedMessage::NotAMessage(format!("SNS envelopes are nested more than {MAX_ENVELOPES} deep")))
}

fn parse_json(text: &str, depth: usize) -> Result<Value, MalformedMessage> {
    let subject = if depth == 0 { "it" } else { "the content of its SNS envelope" };
    serde_json::from_str(text).map_err(|e| MalformedMessage::NotAMessage(format!("{subject} is not JSON: {e}")))
}

/// Parses a message that is not an envelope.
fn parse_content(fields: &Fields<'_>, bucket: &str) -> Result<Vec<Request>, MalformedMessage> {
    if fields.has("Records") {
        notification::parse(fields, bucket)
    } else if fields.has("Event") {
        notification::parse_test_event(fields).map(|request| vec![request])
    } else if fields.has("detail-type") {
        event_bridge::parse(fields, bucket).map(|request| vec![request])
    } else {
        platform_message::parse(fields, bucket).map(|request| vec![request])
    }
}

#[cfg(test)]
mod tests;
