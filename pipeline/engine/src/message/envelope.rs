//! The SNS envelope around a message, present unless raw message delivery is enabled.

use super::{
    fields::Fields,
    malformed::{MalformedMessage, truncate},
};

/// The content of an SNS envelope.
pub(super) enum EnvelopeContent<'a> {
    /// The wrapped message.
    Message(&'a str),
    /// A control message of SNS itself, which a worker ignores.
    Control {
        /// Why it is ignored.
        reason: String,
    },
}

/// Returns the content of the envelope, or `None` if the message is not an envelope.
pub(super) fn open<'a>(fields: &Fields<'a>) -> Result<Option<EnvelopeContent<'a>>, MalformedMessage> {
    if !fields.has("Type") || fields.has("Records") {
        return Ok(None);
    }
    match fields.required_text("Type")? {
        "Notification" => fields.required_text("Message").map(|message| Some(EnvelopeContent::Message(message))),
        kind @ ("SubscriptionConfirmation" | "UnsubscribeConfirmation") => {
            let topic = truncate(fields.text("TopicArn")?.unwrap_or_default());
            // The wording is fixed by tests/golden/messages.
            let reason =
                format!("SNS's {kind} of the topic {topic:?} is answered by whoever set that up, not by a worker");
            Ok(Some(EnvelopeContent::Control { reason }))
        }
        other => {
            let known = "SNS sends \"Notification\", \"SubscriptionConfirmation\" and \"UnsubscribeConfirmation\"";
            Err(fields.bad("Type", format!("is {:?}; {known}", truncate(other))))
        }
    }
}
