//! The events of one photo.

use sparks_domain::{Event, PersonId, RecordedEvent, Timestamp};

/// What the event log records of one photo of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhotoEvents {
    /// Number of `PhotoProcessed` events.
    pub processed: u32,
    /// Number of `PhotoRejected` events.
    pub rejected: u32,
    /// Time of the first decision.
    pub decided_at: Option<Timestamp>,
    /// The persons that its faces were identified as, before merges.
    pub faces: Vec<Option<PersonId>>,
    /// Persons that were allocated for it.
    pub new_persons: Vec<PersonId>,
}

impl PhotoEvents {
    /// Adds an event of the photo.
    pub fn apply(&mut self, recorded: &RecordedEvent) {
        match &recorded.event {
            Event::PhotoProcessed(event) => {
                self.processed += 1;
                self.faces = event.faces.iter().map(|face| face.verdict.person()).collect();
            }
            Event::PhotoRejected(_) => self.rejected += 1,
            Event::PersonsAllocated(event) => {
                self.new_persons.extend(event.persons.iter().map(|allocation| allocation.person));
                return;
            }
            Event::FacesReviewed(event) => {
                for face in &event.faces {
                    if let Some(person) = self.faces.get_mut(usize::from(face.n)) {
                        *person = person.or(face.verdict.person());
                    }
                }
                return;
            }
            _ => return,
        }
        self.decided_at.get_or_insert(recorded.when);
    }
}
