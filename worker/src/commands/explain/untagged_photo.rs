//! The explanation of a photo that is in the event log but has no tags.

use serde_json::{Value, json};
use sparks_domain::{DeletionCause, Event, ImageId, RecordedEvent};

use crate::output::{Output, sanitize};

/// A photo without tags, and the event that says why.
pub struct UntaggedPhoto<'a> {
    /// The photo.
    pub image: &'a ImageId,
    /// The last event about it.
    pub event: &'a RecordedEvent,
}

impl UntaggedPhoto<'_> {
    /// Returns the explanation for scripts.
    pub fn to_json(&self) -> Value {
        json!({
            "image": self.image,
            "outcome": self.outcome(),
            "event": self.event.id,
            "event_seq": self.event.seq,
            "event_type": self.event.event.event_type(),
            "when": self.event.when,
            "actor": self.event.actor,
            "faces": [],
            "words": [self.describe()],
        })
    }

    /// Prints the explanation.
    pub fn print(&self, output: &mut Output) -> std::io::Result<()> {
        output.line(format!("{} {}", self.image, self.describe()))?;
        output.line(format!("decided by event {} ({}), {}", self.event.seq, self.event.id, self.event.when))
    }

    fn outcome(&self) -> &'static str {
        match self.event.event {
            Event::PhotoDeleted(_) => "deleted",
            Event::PhotoRejected(_) => "rejected",
            Event::ProfileProcessed(_) => "profile",
            _ => "unknown",
        }
    }

    fn describe(&self) -> String {
        match &self.event.event {
            Event::PhotoDeleted(e) => match (e.cause, &e.uploader) {
                (DeletionCause::Requested, Some(owner)) => format!("was deleted at the request of {owner}"),
                (DeletionCause::Requested, None) => "was deleted on request; its row had been removed before".into(),
                (DeletionCause::OriginalRemoved, _) => {
                    "was deleted because its original was removed from the bucket".into()
                }
            },
            Event::PhotoRejected(e) => format!("was rejected: {}", sanitize(&e.reason.message)),
            Event::ProfileProcessed(e) => match e.person() {
                Some(person) => format!("is the profile picture of {}, who is {person}", e.email),
                None => format!("is the profile picture of {}; its face matches no person", e.email),
            },
            other => format!("was last changed by {}, which does not decide tags", other.event_type()),
        }
    }
}
