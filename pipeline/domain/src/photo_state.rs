//! The state of one photo in the log: the guard that makes a repeated commit a no-op.

use serde::{Deserialize, Serialize};

use crate::{Event, PersonId, PhotoAdopted, RejectCode, Seq, event::is_zero};

/// The state of a photo after its last event. Also used for profile pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhotoState {
    /// The version of the object that the last event is about.
    pub version: String,
    /// Orders versions, if the store has sequencers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// The photo's status.
    #[serde(rename = "outcome")]
    pub status: PhotoStatus,
    /// The last event.
    pub seq: Seq,
    /// The event that the photo's rows are projected from. Earlier than `seq` where a later version was rejected,
    /// faces were reviewed, tags were adopted, or a later profile picture identified no person.
    #[serde(rename = "shows", default, skip_serializing_if = "Option::is_none")]
    pub projected_seq: Option<Seq>,
    /// How many of its faces have a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faces: u16,
    /// The persons in it, as decided: [`Merges`](crate::Merges) maps them to the current persons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonId>,
    /// Those of them whose tags were adopted from a previous worker and not confirmed by an analysis of our own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<PersonId>,
}

/// The status of a photo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhotoStatus {
    /// Processed: its rows are in the table.
    Processed,
    /// Rejected.
    Rejected(RejectCode),
    /// Deleted.
    Deleted,
    /// Adopted: its rows are those of a previous worker, and it has not been processed.
    Adopted,
}

impl PhotoState {
    /// Returns the state after `event`, recorded at `seq`. Events that are not about photos leave it unchanged.
    pub fn evolve(before: Option<Self>, seq: Seq, event: &Event) -> Option<Self> {
        match event {
            Event::PhotoProcessed(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                status: PhotoStatus::Processed,
                seq,
                projected_seq: Some(seq),
                faces: e.first_face.saturating_add(u16::try_from(e.faces.len()).unwrap_or(u16::MAX)),
                persons: e.persons(),
                adopted: Vec::new(),
            }),
            Event::PhotoRejected(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                status: PhotoStatus::Rejected(e.reason.code),
                seq,
                // The rows of an earlier version stay in the table.
                projected_seq: before.as_ref().and_then(|state| state.projected_seq),
                faces: before.as_ref().map_or(0, |state| state.faces),
                persons: before.as_ref().map(|state| state.persons.clone()).unwrap_or_default(),
                adopted: before.map(|state| state.adopted).unwrap_or_default(),
            }),
            Event::PhotoAdopted(e) => Some(Self::with_adopted_tags(before, seq, e)),
            Event::FacesReviewed(e) => before.map(|mut state| {
                state.persons.extend(e.persons());
                state.persons.sort_unstable();
                state.persons.dedup();
                Self { seq, ..state }
            }),
            Event::PhotoDeleted(e) => Some(Self {
                version: e.version.clone(),
                sequencer: e.sequencer.clone(),
                status: PhotoStatus::Deleted,
                seq,
                projected_seq: None,
                faces: before.map_or(0, |state| state.faces),
                persons: Vec::new(),
                adopted: Vec::new(),
            }),
            Event::ProfileProcessed(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                status: PhotoStatus::Processed,
                seq,
                // A picture that identifies no person leaves the user's person as it was.
                projected_seq: e.person().map(|_| seq).or_else(|| before.as_ref()?.projected_seq),
                faces: e.first_face.saturating_add(u16::from(e.face.is_some())),
                persons: e.person().map(|person| vec![person]).or_else(|| Some(before?.persons)).unwrap_or_default(),
                adopted: Vec::new(),
            }),
            Event::PersonsAllocated(_)
            | Event::PersonRenamed(_)
            | Event::PersonsMerged(_)
            | Event::MergeUndone(_)
            | Event::PersonsForgotten(_)
            | Event::PersonReinstated(_)
            | Event::PersonPictured(_)
            | Event::NumbersReserved(_)
            | Event::PersonAdopted(_)
            | Event::LevelRaised(_) => before,
        }
    }

    /// Adopted tags are added to those of our own decision, if there is one.
    fn with_adopted_tags(before: Option<Self>, seq: Seq, event: &PhotoAdopted) -> Self {
        let (persons, faces) = (event.persons(), before.as_ref().map_or(0, |state| state.faces));
        match before.filter(|state| state.projected_seq.is_some()) {
            Some(mut state) => {
                for list in [&mut state.persons, &mut state.adopted] {
                    list.extend(&persons);
                    list.sort_unstable();
                    list.dedup();
                }
                Self { seq, ..state }
            }
            // The version that the tags are about is unknown.
            None => Self {
                version: String::new(),
                sequencer: None,
                status: PhotoStatus::Adopted,
                seq,
                projected_seq: Some(seq),
                faces,
                adopted: persons.clone(),
                persons,
            },
        }
    }

    /// Returns whether this state is known to be about a later version of the object.
    pub(crate) fn is_newer_than(&self, sequencer: Option<&str>) -> bool {
        self.sequencer.as_deref().zip(sequencer).is_some_and(|(ours, theirs)| is_older(theirs, ours))
    }
}

/// Compares S3 sequencers: hexadecimal texts of different lengths, padded on the right.
fn is_older(a: &str, b: &str) -> bool {
    let width = a.len().max(b.len());
    let padded = |text: &str| format!("{:0<width$}", text.to_ascii_uppercase());
    padded(a) < padded(b)
}
