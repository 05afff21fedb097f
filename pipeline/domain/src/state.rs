//! What the log knows of one photo: the guard that makes a second commit of the same thing a no-op.

use serde::{Deserialize, Serialize};

use crate::{Event, PersonId, RejectCode, Seq, event::is_zero};

/// The standing of a photo after its last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhotoState {
    /// The object's version the last event was about.
    pub version: String,
    /// Orders versions, where the store tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// The event that says so.
    pub seq: Seq,
    /// The `PhotoProcessed` that the table shows: an earlier one, where a later version could not be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Seq>,
    /// How many faces of it have a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faces: u16,
    /// The persons in it, as they were decided: [`Merges`](crate::Merges) say who they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonId>,
}

/// What came of a photo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is in the table.
    Processed,
    /// It cannot be taken.
    Rejected(RejectCode),
}

impl PhotoState {
    /// The state after `event`, recorded at `seq`; events about something else change nothing.
    pub fn evolve(before: Option<Self>, seq: Seq, event: &Event) -> Option<Self> {
        match event {
            Event::PhotoProcessed(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                outcome: Outcome::Processed,
                seq,
                shows: Some(seq),
                faces: e.first_face.saturating_add(u16::try_from(e.faces.len()).unwrap_or(u16::MAX)),
                persons: e.persons(),
            }),
            Event::PhotoRejected(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                outcome: Outcome::Rejected(e.reason.code),
                seq,
                // What an earlier version of the photo put into the table stays there.
                shows: before.as_ref().and_then(|state| state.shows),
                faces: before.as_ref().map_or(0, |state| state.faces),
                persons: before.map(|state| state.persons).unwrap_or_default(),
            }),
            Event::FacesReviewed(e) => before.map(|mut state| {
                state.persons.extend(e.persons());
                state.persons.sort_unstable();
                state.persons.dedup();
                Self { seq, ..state }
            }),
            Event::PersonsAllocated(_) | Event::PersonRenamed(_) | Event::PersonsMerged(_) | Event::MergeUndone(_) => {
                before
            }
        }
    }
}
