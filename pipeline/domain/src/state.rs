//! What the log knows of one photo: the guard that makes a second commit of the same thing a no-op.

use serde::{Deserialize, Serialize};

use crate::{Event, PersonId, PhotoAdopted, RejectCode, Seq, event::is_zero};

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
    /// The event that the table shows: an earlier `PhotoProcessed` or `ProfileProcessed`, where a later version could not be
    /// taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Seq>,
    /// How many faces of it have a number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faces: u16,
    /// The persons in it, as they were decided: [`Merges`](crate::Merges) say who they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonId>,
    /// Those of them whom somebody else had seen in it before us, while we have not looked ourselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<PersonId>,
}

/// What came of a photo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is in the table.
    Processed,
    /// It cannot be taken.
    Rejected(RejectCode),
    /// It is gone.
    Deleted,
    /// It is in the table as somebody else put it there, and we have not looked ourselves.
    Adopted,
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
                adopted: Vec::new(),
            }),
            Event::PhotoRejected(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                outcome: Outcome::Rejected(e.reason.code),
                seq,
                // What an earlier version of the photo put into the table stays there.
                shows: before.as_ref().and_then(|state| state.shows),
                faces: before.as_ref().map_or(0, |state| state.faces),
                persons: before.as_ref().map(|state| state.persons.clone()).unwrap_or_default(),
                adopted: before.map(|state| state.adopted).unwrap_or_default(),
            }),
            Event::PhotoAdopted(e) => Some(Self::adopting(before, seq, e)),
            Event::FacesReviewed(e) => before.map(|mut state| {
                state.persons.extend(e.persons());
                state.persons.sort_unstable();
                state.persons.dedup();
                Self { seq, ..state }
            }),
            Event::PhotoDeleted(e) => Some(Self {
                version: e.version.clone(),
                sequencer: e.sequencer.clone(),
                outcome: Outcome::Deleted,
                seq,
                shows: None,
                faces: before.map_or(0, |state| state.faces),
                persons: Vec::new(),
                adopted: Vec::new(),
            }),
            Event::ProfileProcessed(e) => Some(Self {
                version: e.source.version.clone(),
                sequencer: e.source.sequencer.clone(),
                outcome: Outcome::Processed,
                seq,
                // A picture that tells nobody leaves the user who they were.
                shows: e.person().map(|_| seq).or_else(|| before.as_ref()?.shows),
                faces: e.first_face.saturating_add(u16::from(e.face.is_some())),
                persons: e.person().map(|person| vec![person]).or_else(|| Some(before?.persons)).unwrap_or_default(),
                adopted: Vec::new(),
            }),
            _ => before,
        }
    }

    /// Tags that somebody else gave beside what we show are shown with it.
    fn adopting(before: Option<Self>, seq: Seq, event: &PhotoAdopted) -> Self {
        let (persons, faces) = (event.persons(), before.as_ref().map_or(0, |state| state.faces));
        match before.filter(|state| state.shows.is_some()) {
            Some(mut state) => {
                for known in [&mut state.persons, &mut state.adopted] {
                    known.extend(&persons);
                    known.sort_unstable();
                    known.dedup();
                }
                Self { seq, ..state }
            }
            // Nobody knows of which version they were given.
            None => Self {
                version: String::new(),
                sequencer: None,
                outcome: Outcome::Adopted,
                seq,
                shows: Some(seq),
                faces,
                adopted: persons.clone(),
                persons,
            },
        }
    }

    /// Whether this version of the object came after what this state speaks of: by the sequencers, where both tell.
    pub(crate) fn is_before(&self, version: &str, sequencer: Option<&str>) -> bool {
        match (self.sequencer.as_deref(), sequencer) {
            (Some(ours), Some(theirs)) => is_older(ours, theirs),
            _ => self.version != version,
        }
    }

    /// Whether this version of the object is known to be older than what this state speaks of.
    pub(crate) fn is_after(&self, sequencer: Option<&str>) -> bool {
        self.sequencer.as_deref().zip(sequencer).is_some_and(|(ours, theirs)| is_older(theirs, ours))
    }

    /// Whether the photo is gone, and this version of the object with it.
    pub fn buries(&self, version: Option<&str>, sequencer: Option<&str>) -> bool {
        let later = match (version, sequencer, self.sequencer.as_deref()) {
            (_, Some(theirs), Some(ours)) => is_older(ours, theirs),
            (Some(version), ..) => self.version != version,
            (None, ..) => true,
        };
        self.outcome == Outcome::Deleted && !later
    }
}

/// Sequencers are hexadecimal texts that compare after padding on the right.
fn is_older(a: &str, b: &str) -> bool {
    let width = a.len().max(b.len());
    let padded = |text: &str| format!("{:0<width$}", text.to_ascii_uppercase());
    padded(a) < padded(b)
}
