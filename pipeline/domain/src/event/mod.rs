//! Events of the log.
//!
//! An event, once written by a release, stays readable for ever: within a schema version fields are only added, and
//! optional; a change of meaning is a new version beside the old one.
//!
//! To add an event: add a row to the table below, with a reader level that no release has reached so far, a struct, an
//! arm in [`Event::id`], in `PhotoState::evolve` and in `PersonRegistry::evolve`, and a function that returns its rows.
//! The compiler asks for each of them.

mod adoption;
mod level;
mod person;
mod photo;
mod table;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use table::event_table;

use crate::{
    EventId, ImageId, Mutation, Projection, ProjectionContext, Seq,
    project::{person_rows, photo_rows},
};

pub use adoption::{AdoptedTagging, CropAnalysis, CropFace, NumbersReserved, Origin, PersonAdopted, PhotoAdopted};
pub use level::{Level, LevelRaised};
pub use person::{
    Allocation, Evidence, MergeReason, MergeUndone, PersonPictured, PersonReinstated, PersonRenamed, PersonsAllocated,
    PersonsForgotten, PersonsMerged,
};
pub use photo::{
    DeletionCause, FacesReviewed, PhotoDeleted, PhotoProcessed, PhotoRejected, ProfileProcessed, ReviewedFace,
};

// Rows of the photo lane are in `project/photo_rows.rs`, those of the identity lane in `project/person_rows.rs`.
event_table! {
    // type          | version | level | lane     | rows              | meaning
    PhotoProcessed   | 1       | 1     | photo    | photo_processed   | "A photo was rendered and its faces were identified.";
    PhotoRejected    | 1       | 1     | photo    | photo_rejected    | "A photo cannot be decoded or exceeds a limit.";
    PersonsAllocated | 1       | 1     | identity | persons_allocated | "The new persons of a photo got their numbers.";
    PersonRenamed    | 1       | 1     | identity | person_renamed    | "A person got another display name.";
    FacesReviewed    | 1       | 1     | photo    | faces_reviewed    | "Unidentified faces of a photo were identified.";
    PersonsMerged    | 1       | 1     | identity | persons_merged    | "Two persons were merged.";
    MergeUndone      | 1       | 1     | identity | merge_undone      | "A merge was undone.";
    PhotoDeleted     | 1       | 1     | photo    | photo_deleted     | "A photo was deleted.";
    ProfileProcessed | 1       | 1     | photo    | profile_processed | "A profile picture was analyzed.";
    PersonsForgotten | 1       | 1     | identity | persons_forgotten | "Persons without a photo were removed.";
    PersonReinstated | 1       | 1     | identity | person_reinstated | "A forgotten person is in a photo after all.";
    PersonPictured   | 1       | 1     | identity | person_pictured   | "A person's crop shows another face.";
    NumbersReserved  | 1       | 1     | identity | numbers_reserved  | "Person numbers of a previous worker were reserved.";
    PersonAdopted    | 1       | 1     | identity | person_adopted    | "A person of a previous worker was adopted.";
    PhotoAdopted     | 1       | 1     | photo    | photo_adopted     | "Tags of a previous worker were adopted.";
    LevelRaised      | 1       | 2     | identity | level_raised      | "The reader level of the log was raised.";
}

impl Event {
    /// Returns the event's ID: the same for a repeat of the same decision.
    pub fn id(&self) -> EventId {
        // The preceding event is part of the subject, because a photo may return to an earlier content.
        let after = |follows: Option<Seq>| follows.map(|seq| format!("/{seq}")).unwrap_or_default();
        let subject = match self {
            Self::PhotoProcessed(e) => format!("{}/{}{}", e.image_id, e.source.version, after(e.follows)),
            Self::PhotoRejected(e) => format!("{}/{}{}", e.image_id, e.source.version, after(e.follows)),
            Self::PersonsAllocated(e) => e.photo_event.to_string(),
            Self::PersonRenamed(e) => format!("{}/{}", e.person, e.identity_seq),
            Self::FacesReviewed(e) => format!("{}/{}", e.image_id, e.follows),
            Self::PersonsMerged(e) => format!("{}/{}/{}", e.into, e.from, e.identity_seq),
            Self::MergeUndone(e) => e.merge.to_string(),
            Self::PhotoDeleted(e) => format!("{}/{}{}", e.image_id, e.version, after(e.follows)),
            Self::ProfileProcessed(e) => format!("{}/{}{}", e.image_id, e.source.version, after(e.follows)),
            Self::PersonsForgotten(e) => e.identity_seq.to_string(),
            Self::PersonReinstated(e) => format!("{}/{}", e.person, e.identity_seq),
            Self::PersonPictured(e) => format!("{}/{}", e.person, e.identity_seq),
            Self::NumbersReserved(e) => e.up_to.to_string(),
            Self::PersonAdopted(e) => e.person.to_string(),
            Self::PhotoAdopted(e) => format!("{}{}", e.image_id, after(e.follows)),
            Self::LevelRaised(e) => e.level.to_string(),
        };
        EventId::about(self.event_type(), &subject)
    }

    /// Returns the preceding event about the same photo, if there is one.
    pub fn follows(&self) -> Option<Seq> {
        match self {
            Self::PhotoProcessed(e) => e.follows,
            Self::PhotoRejected(e) => e.follows,
            Self::FacesReviewed(e) => Some(e.follows),
            Self::PhotoDeleted(e) => e.follows,
            Self::ProfileProcessed(e) => e.follows,
            Self::PhotoAdopted(e) => e.follows,
            Self::PersonsAllocated(_)
            | Self::PersonRenamed(_)
            | Self::PersonsMerged(_)
            | Self::MergeUndone(_)
            | Self::PersonsForgotten(_)
            | Self::PersonReinstated(_)
            | Self::PersonPictured(_)
            | Self::NumbersReserved(_)
            | Self::PersonAdopted(_)
            | Self::LevelRaised(_) => None,
        }
    }

    /// Returns the lowest level of a log that may hold the event. A field that changes the meaning of an event of a lower level belongs
    /// here, too, because readers ignore fields that they do not know.
    pub fn level(&self) -> Level {
        match self {
            Self::LevelRaised(e) => e.level.max(self.type_level()),
            _ => self.type_level(),
        }
    }

    /// Fails if a release that wrote the event reads a higher level than this one.
    fn check_level(self) -> Result<Self, UnreadableEvent> {
        match &self {
            Self::LevelRaised(e) if e.level > Level::MAX => Err(UnreadableEvent::HigherLevel(e.level)),
            _ => Ok(self),
        }
    }

    /// Returns whether the event is in the identity lane: a commit that allocates persons must have seen it.
    pub fn is_identity(&self) -> bool {
        self.image().is_none()
    }
}

/// Errors returned when reading an event of the log. An unreadable event is never skipped: every projection would be
/// wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableEvent {
    /// Written by a later release.
    #[error("event type {0:?} is not known to this version of sparks: it was written by a newer one, so upgrade")]
    UnknownType(String),
    /// The log has a level of a later release.
    #[error("the log has reader level {0}, and this version of sparks reads level {max}: upgrade", max = Level::MAX)]
    HigherLevel(Level),
    /// Written by a later release, or damaged.
    #[error(
        "{event_type} cannot be read by this version of sparks ({reason}): upgrade, or restore the log from a backup"
    )]
    BadData {
        /// Its type.
        event_type: String,
        /// The parser's error.
        reason: String,
    },
}

/// The schema version of an event, written as `v`: a reader of one version refuses every other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version<const N: u32>;

impl<const N: u32> Serialize for Version<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(N)
    }
}

impl<'de, const N: u32> Deserialize<'de> for Version<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = u32::deserialize(deserializer)?;
        if found == N { Ok(Self) } else { Err(de::Error::custom(format!("schema version {found}, expected {N}"))) }
    }
}

pub(crate) fn is_zero(number: &u16) -> bool {
    *number == 0
}
