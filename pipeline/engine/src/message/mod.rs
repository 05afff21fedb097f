//! What a message asks for: the edge where texts become types.
//!
//! Every form that the platform or AWS sends is recognised by its fields, because nothing else tells them apart. Each ends as
//! a [`Request`] that names only keys and identifiers that hold, so nobody further in checks again.

mod envelope;
mod event_bridge;
mod fields;
mod key;
mod malformed;
mod notification;
mod object_event;
mod platform;
mod request;

use std::borrow::Cow;

use serde_json::Value;

use self::{envelope::Opened, fields::Fields};
pub(crate) use key::ENDINGS;

pub use self::{
    malformed::Malformed,
    notification::upload_event,
    request::{DeleteRef, FinishedVariants, PhotoRef, ProfileRef, RemovedRef, Request},
};

/// SNS wraps once; forwarding from topic to queue to topic wraps again. More than this is nobody's set-up.
const MOST_ENVELOPES: usize = 3;

/// What the message asks for; every record counts. A loop and not a recursion: the sender chooses how deep envelopes stand.
pub fn understand(body: &str, bucket: &str) -> Result<Vec<Request>, Malformed> {
    let mut text = Cow::Borrowed(body);
    for depth in 0..=MOST_ENVELOPES {
        let message = parse(&text, depth)?;
        let fields = Fields::of_message(&message)?;
        match envelope::open(&fields)? {
            Some(Opened::Letter(letter)) => text = Cow::Owned(letter.to_owned()),
            Some(Opened::Notice { why }) => return Ok(vec![Request::Ignored { why }]),
            None => return read(&fields, bucket),
        }
    }
    Err(Malformed::NotAMessage(format!("SNS envelopes stand more than {MOST_ENVELOPES} deep in each other")))
}

fn parse(text: &str, depth: usize) -> Result<Value, Malformed> {
    let what = if depth == 0 { "it" } else { "what its SNS envelope holds" };
    serde_json::from_str(text).map_err(|e| Malformed::NotAMessage(format!("{what} is not JSON: {e}")))
}

/// A message that is no envelope.
fn read(fields: &Fields<'_>, bucket: &str) -> Result<Vec<Request>, Malformed> {
    if fields.has("Records") {
        notification::read(fields, bucket)
    } else if fields.has("Event") {
        notification::read_test(fields).map(|request| vec![request])
    } else if fields.has("detail-type") {
        event_bridge::read(fields, bucket).map(|request| vec![request])
    } else {
        platform::read(fields, bucket).map(|request| vec![request])
    }
}

#[cfg(test)]
mod tests;
