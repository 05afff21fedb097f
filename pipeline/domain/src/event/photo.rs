//! Events about photos and profile pictures.

use serde::{Deserialize, Serialize};

use super::{Evidence, Version, is_zero};
use crate::{
    Candidate, Email, Face, FaceId, ImageId, PersonId, Rejection, Seq, SourceObject, TakenAt, Timestamp, Variants,
    Verdict,
};

/// A photo was rendered, analyzed and its faces identified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoProcessed {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// The user who uploaded it.
    pub uploader: Email,
    /// The object it was read from.
    pub source: SourceObject,
    /// Width in pixels, upright.
    pub width: u32,
    /// Height in pixels, upright.
    pub height: u32,
    /// When it was taken, if its EXIF says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<TakenAt>,
    /// Its variants.
    pub variants: Variants,
    /// The analyzer that detected faces; `off` if none.
    pub analyzer: String,
    /// The identity event up to which persons were considered.
    pub identity_seq: Seq,
    /// The number of the first face: numbers of faces of earlier versions are not reused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_face: u16,
    /// The faces, in the analyzer's order, numbered from `first_face`.
    pub faces: Vec<Face>,
    /// Persons of adopted tags who match no face here: their tags stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<PersonId>,
    /// The preceding event about this photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

impl PhotoProcessed {
    /// Returns the persons in the photo, each once, by number.
    pub fn persons(&self) -> Vec<PersonId> {
        let identified = self.faces.iter().filter_map(|face| face.verdict.person());
        let mut persons: Vec<_> = identified.chain(self.adopted.iter().copied()).collect();
        persons.sort_unstable();
        persons.dedup();
        persons
    }
}

/// A photo was rejected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoRejected {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// The user who uploaded it.
    pub uploader: Email,
    /// The object it was read from.
    pub source: SourceObject,
    /// Why.
    pub reason: Rejection,
    /// The preceding event about this photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// Faces that were unidentified when their photo was decided were identified later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FacesReviewed {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// The identity event up to which persons were considered.
    pub identity_seq: Seq,
    /// The faces that were identified; all others stay as they are.
    pub faces: Vec<ReviewedFace>,
    /// The preceding event about this photo.
    pub follows: Seq,
}

impl FacesReviewed {
    /// Returns the identified persons.
    pub fn persons(&self) -> impl Iterator<Item = PersonId> {
        self.faces.iter().filter_map(|face| face.verdict.person())
    }
}

/// One face that was identified by a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewedFace {
    /// Its number in the photo.
    pub n: u16,
    /// The nearest persons, best first.
    pub candidates: Vec<Candidate>,
    /// The similarity from which a candidate matched.
    pub threshold: f32,
    /// The evidence of all templates of the person, where the nearest alone is below the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The verdict.
    pub verdict: Verdict,
}

/// A photo was deleted. The event is its tombstone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoDeleted {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// Why.
    pub cause: DeletionCause,
    /// The user who uploaded it, if there was an IMAGE row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploader: Option<Email>,
    /// The last version of the object; empty if unknown.
    pub version: String,
    /// Orders versions, if the store has sequencers: only a later one is a new photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// The objects to delete with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// The persons in it, as decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons: Vec<PersonId>,
    /// Faces of other photos that become templates, for persons who lose all of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_by: Vec<FaceId>,
    /// When the owner's request was sent, by the clock of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Timestamp>,
    /// The version of the original that the request met: any other is a later upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// The preceding event about this photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// Why a photo was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeletionCause {
    /// Its owner requested it.
    #[serde(rename = "asked")]
    Requested,
    /// Its original was removed from the bucket: the platform removes its own rows itself.
    OriginalRemoved,
}

/// A user's profile picture was analyzed: its largest face is the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileProcessed {
    /// Schema version.
    pub v: Version<1>,
    /// The ID under which its faces are numbered: see [`ImageId::of_profile`].
    pub image_id: ImageId,
    /// The user.
    pub email: Email,
    /// The object it was read from.
    pub source: SourceObject,
    /// The analyzer that detected faces; `off` if none.
    pub analyzer: String,
    /// The identity event up to which persons were considered.
    pub identity_seq: Seq,
    /// The number of the face: numbers of faces of earlier pictures are not reused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_face: u16,
    /// The largest face, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<Face>,
    /// The preceding event about this user's profile picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

impl ProfileProcessed {
    /// Returns the user's person, if the face is identified.
    pub fn person(&self) -> Option<PersonId> {
        self.face.as_ref()?.verdict.person()
    }
}
