//! The explanation of tags that were adopted from another worker.

use serde_json::{Value, json};
use sparks_domain::{Merges, PersonId, PhotoAdopted, PhotoState, RecordedEvent};

use crate::output::Output;

/// A photo whose tags were adopted from another worker.
pub struct AdoptedPhoto {
    /// The event that adopted the tags.
    pub recorded: RecordedEvent,
    /// The content of that event.
    pub event: PhotoAdopted,
    /// The state of the photo.
    pub state: PhotoState,
    /// The merges in effect.
    pub merges: Merges,
}

impl AdoptedPhoto {
    /// Returns the persons in the photo: who they are after merges, and who they were adopted as.
    pub fn persons(&self) -> Vec<(PersonId, PersonId)> {
        self.state.persons.iter().map(|person| (self.merges.current(*person), *person)).collect()
    }

    /// Returns the explanation for scripts.
    pub fn to_json(&self, wanted: Option<PersonId>) -> Value {
        let persons = self.persons().into_iter().filter(|(now, _)| wanted.is_none_or(|wanted| wanted == *now));
        let persons = persons
            .map(|(now, then)| json!({ "person": now, "adopted_as": then, "words": [describe(now, then)] }))
            .collect::<Vec<_>>();
        json!({
            "image": self.event.image_id,
            "outcome": "adopted",
            "event": self.recorded.id,
            "event_seq": self.recorded.seq,
            "event_type": self.recorded.event.event_type(),
            "when": self.recorded.when,
            "actor": self.recorded.actor,
            "faces": [],
            "adopted": persons,
        })
    }

    /// Prints the explanation.
    pub fn print(&self, wanted: Option<PersonId>, output: &mut Output) -> std::io::Result<()> {
        let RecordedEvent { seq, id, when, .. } = &self.recorded;
        output.line(format!("{}: tags adopted from another worker", self.event.image_id))?;
        output.line(format!("adopted by event {seq} ({id}), {when}"))?;
        for (now, then) in self.persons().into_iter().filter(|(now, _)| wanted.is_none_or(|wanted| wanted == *now)) {
            output.line(describe(now, then))?;
        }
        Ok(())
    }
}

/// Describes an adopted tag.
pub fn describe(now: PersonId, then: PersonId) -> String {
    match now == then {
        true => format!("{now}: adopted from another worker"),
        false => format!("{now}: adopted from another worker as {then}; since then {then} was merged into {now}"),
    }
}
