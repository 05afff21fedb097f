//! What the log says. An event, once written by a released version, stays readable for ever:
//! within a version fields are only added, and optional; a change of meaning is a new version beside the old one.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    Attributes, Candidate, Email, EventId, Face, FaceId, ImageId, PersonId, Rejection, Seq, Source, TakenAt, Variants,
    Verdict,
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
}

/// A photo was rendered, looked at and decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoProcessed {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// Who uploaded it.
    pub uploader: Email,
    /// The object it came from.
    pub source: Source,
    /// Pixels across, upright.
    pub width: u32,
    /// Pixels down, upright.
    pub height: u32,
    /// When it was taken, where the camera tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<TakenAt>,
    /// The pictures made of it.
    pub variants: Variants,
    /// The analyzer that looked for faces (`off`: nobody looked).
    pub analyzer: String,
    /// The identity event up to which the known persons were considered.
    pub identity_seq: Seq,
    /// The number of the first face: faces of a photo's earlier versions keep theirs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_face: u16,
    /// The faces, in the analyzer's order, numbered from `first_face`.
    pub faces: Vec<Face>,
    /// The event about this photo that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

impl PhotoProcessed {
    /// The persons in the photo, each once, by number.
    pub fn persons(&self) -> Vec<PersonId> {
        let mut persons: Vec<_> = self.faces.iter().filter_map(|face| face.verdict.person()).collect();
        persons.sort_unstable();
        persons.dedup();
        persons
    }
}

/// A photo cannot be taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoRejected {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// Who uploaded it.
    pub uploader: Email,
    /// The object it came from.
    pub source: Source,
    /// Why.
    pub reason: Rejection,
    /// The event about this photo that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// Strangers got their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsAllocated {
    /// Schema version.
    pub v: Version<1>,
    /// The photo they are in.
    pub image_id: ImageId,
    /// The event of the photo, committed with this one.
    pub photo_event: EventId,
    /// The counter before.
    pub counter: u32,
    /// The new persons, by number.
    pub persons: Vec<Allocation>,
}

/// One new person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The number they got.
    pub person: PersonId,
    /// Their best face: the crop.
    pub face: FaceId,
    /// The faces they are recognised by.
    pub templates: Vec<FaceId>,
}

/// A person got a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonRenamed {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
    /// The name they had.
    pub from: String,
    /// The name they have.
    pub to: String,
}

/// Faces that were nobody's when their photo was decided are somebody's now that more is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FacesReviewed {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// The identity event up to which the known persons were considered.
    pub identity_seq: Seq,
    /// The faces that were decided anew; the others stay as they are.
    pub faces: Vec<ReviewedFace>,
    /// The event about this photo that this one follows.
    pub follows: Seq,
}

impl FacesReviewed {
    /// The persons that were found.
    pub fn persons(&self) -> impl Iterator<Item = PersonId> {
        self.faces.iter().filter_map(|face| face.verdict.person())
    }
}

/// One face, decided anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewedFace {
    /// Its number in the photo.
    pub n: u16,
    /// The nearest persons, nearest first.
    pub candidates: Vec<Candidate>,
    /// The similarity from which a candidate is the person.
    pub threshold: f32,
    /// What all faces of the person say, where the nearest alone is not near enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Who it is.
    pub verdict: Verdict,
}

/// Two persons turned out to be one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsMerged {
    /// Schema version.
    pub v: Version<1>,
    /// Who both are from now on.
    pub into: PersonId,
    /// Who is nobody of their own any more.
    pub from: PersonId,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
    /// Why.
    pub grounds: Grounds,
    /// The row that goes, as it was: taking the merge back gives it back.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub row: Attributes,
    /// The users who were `from` and are `into` now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Email>,
}

/// Why two persons are one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Their faces are alike.
    Alike(Evidence),
    /// A human says so.
    Told,
}

/// How alike two persons are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The mean similarity over all pairs of their faces.
    pub similarity: f32,
    /// How far their nearest faces stand out from what is usual between them and everybody else, in deviations.
    pub distinction: f32,
    /// By how many deviations whoever comes next is behind.
    pub lead: f32,
    /// How far that is beyond what was needed; below zero it is not enough.
    pub beyond: f32,
    /// How many pairs of faces were compared.
    pub pairs: u32,
}

/// A merge was taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeUndone {
    /// Schema version.
    pub v: Version<1>,
    /// The merge.
    pub merge: EventId,
    /// Who both were.
    pub into: PersonId,
    /// Who is a person of their own again.
    pub from: PersonId,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
}

/// A photo is gone: what is left of it is this tombstone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoDeleted {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// Why.
    pub cause: DeletionCause,
    /// Whose photo it was, where its row told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploader: Option<Email>,
    /// The last version of the object that is gone; empty where nobody knew any.
    pub version: String,
    /// Orders versions, where the store tells: only a later one is a new photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// The objects that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// The persons in it, as they were decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonId>,
    /// Faces of other photos that persons are known by from now on, because all they were known by is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_by: Vec<FaceId>,
    /// The event about this photo that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// Why a photo is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeletionCause {
    /// Its owner wanted it.
    Asked,
    /// Somebody removed the original: the platform does the rest itself.
    OriginalRemoved,
}

/// A user's picture of themselves was looked at: its largest face is the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileProcessed {
    /// Schema version.
    pub v: Version<1>,
    /// The name under which its faces are numbered: see [`ImageId::of_profile`].
    pub image_id: ImageId,
    /// The user.
    pub email: Email,
    /// The object it came from.
    pub source: Source,
    /// The analyzer that looked for faces (`off`: nobody looked).
    pub analyzer: String,
    /// The identity event up to which the known persons were considered.
    pub identity_seq: Seq,
    /// The number of the face: those of earlier pictures keep theirs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_face: u16,
    /// The largest face, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<Face>,
    /// The event about this user's picture that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

impl ProfileProcessed {
    /// Who the user is, if the face tells.
    pub fn person(&self) -> Option<PersonId> {
        self.face.as_ref()?.verdict.person()
    }
}

/// Persons are in no photo any more: row, crop and signatures are gone, and their numbers stay theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsForgotten {
    /// Schema version.
    pub v: Version<1>,
    /// The persons, with everybody who had been joined into them.
    pub persons: Vec<PersonId>,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
}

/// A photo of somebody was decided while they were being forgotten: they are known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonReinstated {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The face they are shown by.
    pub face: FaceId,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
}

/// A person is shown by another face, because the photo of the one before is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonPictured {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The face.
    pub face: FaceId,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
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
            Self::PersonsAllocated(_)
            | Self::PersonRenamed(_)
            | Self::PersonsMerged(_)
            | Self::MergeUndone(_)
            | Self::PersonsForgotten(_)
            | Self::PersonReinstated(_)
            | Self::PersonPictured(_) => None,
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
