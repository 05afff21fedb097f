//! Tags that somebody else gave before us.

use serde_json::{Value, json};
use sparks_domain::{Merges, PersonId, PhotoAdopted, PhotoState, Recorded};

use crate::output::Output;

/// A photo as somebody else tagged it.
pub struct AdoptedPhoto {
    /// The event by which its tags became ours.
    pub recorded: Recorded,
    /// What it says.
    pub event: PhotoAdopted,
    /// Where the photo stands.
    pub state: PhotoState,
    /// Who is whom by now.
    pub merges: Merges,
}

impl AdoptedPhoto {
    /// Who is in it now, each with whom they were adopted as.
    pub fn persons(&self) -> Vec<(PersonId, PersonId)> {
        self.state.persons.iter().map(|person| (self.merges.now(*person), *person)).collect()
    }

    /// For programs.
    pub fn to_json(&self, wanted: Option<PersonId>) -> Value {
        let persons = self.persons().into_iter().filter(|(now, _)| wanted.is_none_or(|wanted| wanted == *now));
        let persons = persons
            .map(|(now, then)| json!({ "person": now, "adopted_as": then, "words": [words(now, then)] }))
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

    /// For people.
    pub fn tell(&self, wanted: Option<PersonId>, output: &mut Output) -> std::io::Result<()> {
        let Recorded { seq, id, when, .. } = &self.recorded;
        output.line(format!("{}: its tags were decided before us, and adopted", self.event.image_id))?;
        output.line(format!("adopted by event {seq} ({id}), {when}"))?;
        for (now, then) in self.persons().into_iter().filter(|(now, _)| wanted.is_none_or(|wanted| wanted == *now)) {
            output.line(words(now, then))?;
        }
        Ok(())
    }
}

/// Why a tag is there that we did not decide.
pub fn words(now: PersonId, then: PersonId) -> String {
    match now == then {
        true => format!("{now}: adopted, decided before us"),
        false => format!("{now}: adopted as {then}, decided before us; since then {then} is {now}"),
    }
}
