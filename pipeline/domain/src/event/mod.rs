//! What the log says. An event, once written by a released version, stays readable for ever:
//! within a version fields are only added, and optional; a change of meaning is a new version beside the old one.

mod adoption;
mod person;
mod photo;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{EventId, ImageId, Seq};

pub use adoption::{AdoptedTagging, CropFace, Likeness, NumbersReserved, Origin, PersonAdopted, PhotoAdopted};
pub use person::{
    Allocation, Evidence, Grounds, MergeUndone, PersonPictured, PersonReinstated, PersonRenamed, PersonsAllocated,
    PersonsForgotten, PersonsMerged,
};
pub use photo::{
    DeletionCause, FacesReviewed, PhotoDeleted, PhotoProcessed, PhotoRejected, ProfileProcessed, ReviewedFace,
};

/// Everything that can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A photo was rendered, looked at and decided.
    PhotoProcessed(PhotoProcessed),
    /// A photo cannot be taken.
    PhotoRejected(PhotoRejected),
    /// Strangers got their numbers: one event for all new persons of a photo.
    PersonsAllocated(PersonsAllocated),
    /// A person got a name.
    PersonRenamed(PersonRenamed),
    /// Faces that were nobody's are somebody's.
    FacesReviewed(FacesReviewed),
    /// Two persons are one.
    PersonsMerged(PersonsMerged),
    /// They are not.
    MergeUndone(MergeUndone),
    /// A photo is gone.
    PhotoDeleted(PhotoDeleted),
    /// A user's picture of themselves was looked at.
    ProfileProcessed(ProfileProcessed),
    /// Persons are in no photo any more, and what was known of them is gone.
    PersonsForgotten(PersonsForgotten),
    /// Somebody who had been forgotten is in a photo, after all.
    PersonReinstated(PersonReinstated),
    /// A person is shown by another face.
    PersonPictured(PersonPictured),
    /// Numbers were given out before us.
    NumbersReserved(NumbersReserved),
    /// A person whom somebody else founded is ours.
    PersonAdopted(PersonAdopted),
    /// The tags that somebody else gave a photo are ours.
    PhotoAdopted(PhotoAdopted),
}

/// An event this program cannot read. Skipping it would make every projection wrong, so nobody does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableEvent {
    /// Written by a later release.
    #[error("event type {0:?} is not known to this version of sparks: it was written by a newer one, so upgrade")]
    UnknownType(String),
    /// Written by a later release, or damaged.
    #[error(
        "{event_type} cannot be read by this version of sparks ({reason}): upgrade, or restore the log from a backup"
    )]
    BadData {
        /// Its type.
        event_type: String,
        /// What the parser says.
        reason: String,
    },
}

impl Event {
    /// The type's name in the log.
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::PhotoProcessed(_) => "PhotoProcessed",
            Self::PhotoRejected(_) => "PhotoRejected",
            Self::PersonsAllocated(_) => "PersonsAllocated",
            Self::PersonRenamed(_) => "PersonRenamed",
            Self::FacesReviewed(_) => "FacesReviewed",
            Self::PersonsMerged(_) => "PersonsMerged",
            Self::MergeUndone(_) => "MergeUndone",
            Self::PhotoDeleted(_) => "PhotoDeleted",
            Self::ProfileProcessed(_) => "ProfileProcessed",
            Self::PersonsForgotten(_) => "PersonsForgotten",
            Self::PersonReinstated(_) => "PersonReinstated",
            Self::PersonPictured(_) => "PersonPictured",
            Self::NumbersReserved(_) => "NumbersReserved",
            Self::PersonAdopted(_) => "PersonAdopted",
            Self::PhotoAdopted(_) => "PhotoAdopted",
        }
    }

    /// The event's name: the same for a repeat.
    pub fn id(&self) -> EventId {
        // What came before is part of the subject: a photo may return to an earlier content.
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
        };
        EventId::about(self.event_type(), &subject)
    }

    /// Whether the event changes who is known, so that everybody who allocates must have seen it.
    pub fn is_identity(&self) -> bool {
        self.image().is_none()
    }

    /// The photo it is about, if it is about one; all others are about persons.
    pub fn image(&self) -> Option<&ImageId> {
        match self {
            Self::PhotoProcessed(e) => Some(&e.image_id),
            Self::PhotoRejected(e) => Some(&e.image_id),
            Self::FacesReviewed(e) => Some(&e.image_id),
            Self::PhotoDeleted(e) => Some(&e.image_id),
            Self::ProfileProcessed(e) => Some(&e.image_id),
            Self::PhotoAdopted(e) => Some(&e.image_id),
            Self::PersonsAllocated(_)
            | Self::PersonRenamed(_)
            | Self::PersonsMerged(_)
            | Self::MergeUndone(_)
            | Self::PersonsForgotten(_)
            | Self::PersonReinstated(_)
            | Self::PersonPictured(_)
            | Self::NumbersReserved(_)
            | Self::PersonAdopted(_) => None,
        }
    }

    /// The event's JSON, as the log keeps it.
    pub fn to_data(&self) -> String {
        match self {
            Self::PhotoProcessed(e) => serde_json::to_string(e),
            Self::PhotoRejected(e) => serde_json::to_string(e),
            Self::PersonsAllocated(e) => serde_json::to_string(e),
            Self::PersonRenamed(e) => serde_json::to_string(e),
            Self::FacesReviewed(e) => serde_json::to_string(e),
            Self::PersonsMerged(e) => serde_json::to_string(e),
            Self::MergeUndone(e) => serde_json::to_string(e),
            Self::PhotoDeleted(e) => serde_json::to_string(e),
            Self::ProfileProcessed(e) => serde_json::to_string(e),
            Self::PersonsForgotten(e) => serde_json::to_string(e),
            Self::PersonReinstated(e) => serde_json::to_string(e),
            Self::PersonPictured(e) => serde_json::to_string(e),
            Self::NumbersReserved(e) => serde_json::to_string(e),
            Self::PersonAdopted(e) => serde_json::to_string(e),
            Self::PhotoAdopted(e) => serde_json::to_string(e),
        }
        .unwrap_or_default() // plain structs with text keys always serialise
    }

    /// Reads what [`Event::to_data`] of this or any earlier release wrote.
    pub fn parse(event_type: &str, data: &str) -> Result<Self, UnreadableEvent> {
        match event_type {
            "PhotoProcessed" => serde_json::from_str(data).map(Self::PhotoProcessed),
            "PhotoRejected" => serde_json::from_str(data).map(Self::PhotoRejected),
            "PersonsAllocated" => serde_json::from_str(data).map(Self::PersonsAllocated),
            "PersonRenamed" => serde_json::from_str(data).map(Self::PersonRenamed),
            "FacesReviewed" => serde_json::from_str(data).map(Self::FacesReviewed),
            "PersonsMerged" => serde_json::from_str(data).map(Self::PersonsMerged),
            "MergeUndone" => serde_json::from_str(data).map(Self::MergeUndone),
            "PhotoDeleted" => serde_json::from_str(data).map(Self::PhotoDeleted),
            "ProfileProcessed" => serde_json::from_str(data).map(Self::ProfileProcessed),
            "PersonsForgotten" => serde_json::from_str(data).map(Self::PersonsForgotten),
            "PersonReinstated" => serde_json::from_str(data).map(Self::PersonReinstated),
            "PersonPictured" => serde_json::from_str(data).map(Self::PersonPictured),
            "NumbersReserved" => serde_json::from_str(data).map(Self::NumbersReserved),
            "PersonAdopted" => serde_json::from_str(data).map(Self::PersonAdopted),
            "PhotoAdopted" => serde_json::from_str(data).map(Self::PhotoAdopted),
            unknown => return Err(UnreadableEvent::UnknownType(unknown.to_owned())),
        }
        .map_err(|e| UnreadableEvent::BadData { event_type: event_type.to_owned(), reason: e.to_string() })
    }
}

pub(crate) fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// The number of an event's schema, written as `v`: a reader of one version refuses every other.
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
