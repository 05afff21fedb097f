//! Events about persons.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::{Attributes, Email, EventId, FaceId, ImageId, PersonId, Seq};

/// New persons got their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsAllocated {
    /// Schema version.
    pub v: Version<1>,
    /// The photo that they are in.
    pub image_id: ImageId,
    /// The photo's event, committed in the same transaction.
    pub photo_event: EventId,
    /// The counter before the allocation.
    pub counter: u32,
    /// The new persons, by number.
    pub persons: Vec<Allocation>,
}

/// One new person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The person.
    pub person: PersonId,
    /// The face of the best quality, which the crop shows.
    pub face: FaceId,
    /// The faces that become their templates.
    pub templates: Vec<FaceId>,
}

/// A person got another display name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonRenamed {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
    /// The name before.
    pub from: String,
    /// The name from now on.
    pub to: String,
}

/// Two persons were merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsMerged {
    /// Schema version.
    pub v: Version<1>,
    /// The person who remains.
    pub into: PersonId,
    /// The person who is absorbed.
    pub from: PersonId,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
    /// Why.
    pub grounds: MergeReason,
    /// The attributes of the removed PERSON row; undoing the merge restores them.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub row: Attributes,
    /// The users whose person changes from `from` to `into`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Email>,
}

/// Why two persons were merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeReason {
    /// Consolidation found that their faces are similar.
    #[serde(rename = "alike")]
    SimilarFaces(Evidence),
    /// A user requested it.
    #[serde(rename = "told")]
    Requested,
}

/// How similar two persons are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The mean similarity over all pairs of their faces.
    pub similarity: f32,
    /// How far the mean exceeds the median similarity of different persons, in deviations. In events before decision 29: how far
    /// their nearest faces exceed what is usual between them and all other persons.
    pub distinction: f32,
    /// The distance to the next similar person, in deviations.
    pub lead: f32,
    /// The surplus over the required deviations; negative where the evidence is not sufficient.
    pub beyond: f32,
    /// The number of pairs of faces that were compared.
    pub pairs: u32,
}

/// A merge was undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeUndone {
    /// Schema version.
    pub v: Version<1>,
    /// The merge.
    pub merge: EventId,
    /// The person who remained.
    pub into: PersonId,
    /// The person who was absorbed, and is a person of their own again.
    pub from: PersonId,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}

/// Persons without a photo were removed: row, crop and signatures. Their numbers are not reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonsForgotten {
    /// Schema version.
    pub v: Version<1>,
    /// The persons, with all who were merged into them.
    pub persons: Vec<PersonId>,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}

/// A person is in a photo that was decided while they were being forgotten: they are restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonReinstated {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The face that their crop shows.
    pub face: FaceId,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}

/// A person's crop shows another face, because the photo of the former was deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonPictured {
    /// Schema version.
    pub v: Version<1>,
    /// The person.
    pub person: PersonId,
    /// The face.
    pub face: FaceId,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}
