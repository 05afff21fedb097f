//! What SNS wraps around a message, unless delivery is raw.

use super::{
    fields::Fields,
    malformed::{Malformed, cut},
};

/// An envelope that was opened.
pub(super) enum Opened<'a> {
    /// The message inside.
    Letter(&'a str),
    /// SNS speaks for itself, and we have nothing to do.
    Notice {
        /// Why not.
        why: String,
    },
}

/// Opens the message, if it is an envelope.
pub(super) fn open<'a>(fields: &Fields<'a>) -> Result<Option<Opened<'a>>, Malformed> {
    if !fields.has("Type") || fields.has("Records") {
        return Ok(None);
    }
    match fields.required_text("Type")? {
        "Notification" => fields.required_text("Message").map(|letter| Some(Opened::Letter(letter))),
        kind @ ("SubscriptionConfirmation" | "UnsubscribeConfirmation") => {
            let topic = cut(fields.text("TopicArn")?.unwrap_or_default());
            let why =
                format!("SNS's {kind} of the topic {topic:?} is answered by whoever set that up, not by a worker");
            Ok(Some(Opened::Notice { why }))
        }
        other => {
            let known =
                "\"Notification\", \"SubscriptionConfirmation\" and \"UnsubscribeConfirmation\" are what SNS sends";
            Err(fields.bad("Type", format!("is {:?}; {known}", cut(other))))
        }
    }
}
