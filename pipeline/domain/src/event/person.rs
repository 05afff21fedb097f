//! What happens to persons.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::{Attributes, Email, EventId, FaceId, ImageId, PersonId, Seq};

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
