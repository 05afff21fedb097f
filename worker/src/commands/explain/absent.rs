//! A photo that the log knows and the table does not show.

use serde_json::{Value, json};
use sparks_domain::{DeletionCause, Event, ImageId, Recorded};

use crate::output::{Output, harmless};

/// The last that was said of a photo without tags.
pub struct Absent<'a> {
    /// The photo.
    pub image: &'a ImageId,
    /// The event that says so.
    pub event: &'a Recorded,
}

impl Absent<'_> {
    /// For programs.
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
            "words": [self.words()],
        })
    }

    /// For people.
    pub fn tell(&self, output: &mut Output) -> std::io::Result<()> {
        output.line(format!("{} {}", self.image, self.words()))?;
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

    fn words(&self) -> String {
        match &self.event.event {
            Event::PhotoDeleted(e) => match (e.cause, &e.uploader) {
                (DeletionCause::Asked, Some(owner)) => format!("was deleted, as {owner} wished"),
                (DeletionCause::Asked, None) => "was deleted on request, after its row".into(),
                (DeletionCause::OriginalRemoved, _) => "is gone: somebody removed its original".into(),
            },
            Event::PhotoRejected(e) => format!("could not be taken: {}", harmless(&e.reason.message)),
            Event::ProfileProcessed(e) => match e.person() {
                Some(person) => format!("is the profile picture of {}, who is {person}", e.email),
                None => format!("is the profile picture of {}, whom nobody knows by it", e.email),
            },
            other => format!("is last spoken of by {}, which says nothing of tags", other.event_type()),
        }
    }
}
