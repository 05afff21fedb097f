//! Events that adopt persons and tags of a previous worker from the table.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::{Attributes, Email, FaceBox, FaceId, ImageId, PersonId, Point, Quality, Seq, Timestamp};

/// Person numbers allocated by a previous worker were reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumbersReserved {
    /// Schema version.
    pub v: Version<1>,
    /// The highest of them: the counter's value, or a higher number that a row has.
    pub up_to: u32,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}

/// A person of a previous worker was adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonAdopted {
    /// Schema version.
    pub v: Version<1>,
    /// The person, who keeps their number.
    pub person: PersonId,
    /// The display name.
    pub display_name: String,
    /// When the person was created.
    pub created_at: Timestamp,
    /// The key of the crop.
    pub crop_key: String,
    /// What it was adopted from.
    pub origin: Origin,
    /// The ID of the face in the crop: see [`ImageId::of_crop`].
    pub face: FaceId,
    /// The analyzer of the crop.
    pub analyzer: String,
    /// The result of analyzing the crop.
    pub likeness: CropAnalysis,
    /// The last identity event that the decision is based on.
    pub identity_seq: Seq,
}

/// What was adopted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Rows of the platform's table.
    Table,
}

/// The face in an adopted person's crop, or why it gives no template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CropAnalysis {
    /// The face is a template.
    #[serde(rename = "known")]
    Usable(CropFace),
    /// There is no crop.
    NoCrop,
    /// The crop cannot be decoded, and why.
    Unreadable(String),
    /// There is no face in the crop.
    NoFace,
    /// The quality of the face is too low for a template.
    TooPoor(CropFace),
}

/// The face in a crop. Its signature is stored elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CropFace {
    /// The version of the crop's object.
    pub version: String,
    /// The face's position in the crop.
    #[serde(rename = "box")]
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<Point>,
    /// The quality of the face.
    pub quality: Quality,
    /// The detector's confidence.
    pub confidence: f32,
    /// The model that computed the signature.
    pub model: String,
}

/// The tags that a previous worker gave a photo were adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoAdopted {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// The user who uploaded it.
    pub uploader: Email,
    /// The original's key, if the IMAGE row has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_key: Option<String>,
    /// `IMAGE.images` at the adoption.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub images: Attributes,
    /// What it was adopted from.
    pub origin: Origin,
    /// Its adopted tags, by person number.
    pub taggings: Vec<AdoptedTagging>,
    /// The preceding event about this photo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// A tag at its adoption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdoptedTagging {
    /// The tagged person.
    pub person: PersonId,
    /// `TAGGING.s3Key`, if the row has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_key: Option<String>,
    /// `TAGGING.images`, if the row has them.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub images: Attributes,
    /// `TAGGING.createdAt`.
    pub created_at: Timestamp,
}

impl PhotoAdopted {
    /// Returns the tagged persons, by number.
    pub fn persons(&self) -> Vec<PersonId> {
        self.taggings.iter().map(|tagging| tagging.person).collect()
    }
}
