//! What happens to photos.

use serde::{Deserialize, Serialize};

use super::{Evidence, Version, is_zero};
use crate::{Candidate, Email, Face, FaceId, ImageId, PersonId, Rejection, Seq, Source, TakenAt, Variants, Verdict};

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
    /// Persons whom somebody else had seen in the photo before us, and whom no face here is: their tags stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<PersonId>,
    /// The event about this photo that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

impl PhotoProcessed {
    /// The persons in the photo, each once, by number.
    pub fn persons(&self) -> Vec<PersonId> {
        let seen = self.faces.iter().filter_map(|face| face.verdict.person());
        let mut persons: Vec<_> = seen.chain(self.adopted.iter().copied()).collect();
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
