//! What somebody else decided before us, taken over from the table.

use serde::{Deserialize, Serialize};

use super::Version;
use crate::{Attributes, Email, FaceBox, FaceId, ImageId, PersonId, Point, Quality, Seq, Timestamp};

/// Numbers that were given out before us are never given out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumbersReserved {
    /// Schema version.
    pub v: Version<1>,
    /// The highest of them: the counter as it stood, or what a row has beyond it.
    pub up_to: u32,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
}

/// A person whom somebody else founded is ours from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonAdopted {
    /// Schema version.
    pub v: Version<1>,
    /// The person, under the number they had.
    pub person: PersonId,
    /// The name they had.
    pub display_name: String,
    /// Since when they were known.
    pub created_at: Timestamp,
    /// The picture they are shown by.
    pub crop_key: String,
    /// What was taken over.
    pub origin: Origin,
    /// The name of the face in that picture: see [`ImageId::of_crop`].
    pub face: FaceId,
    /// The analyzer that looked for it.
    pub analyzer: String,
    /// What it saw there.
    pub likeness: Likeness,
    /// The identity event the decision was made after.
    pub identity_seq: Seq,
}

/// Where something that was taken over stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In rows of the platform's table.
    Table,
}

/// What a person is known by, or why by nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// The face in their picture.
    Known(CropFace),
    /// There is no picture.
    NoCrop,
    /// The picture cannot be read, and why.
    Unreadable(String),
    /// There is no face in it.
    NoFace,
    /// The face is seen too poorly to know anybody by it.
    TooPoor(CropFace),
}

/// A face in a person's picture. What it looks like is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CropFace {
    /// The version of the picture.
    pub version: String,
    /// Where the face is in it.
    #[serde(rename = "box")]
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<Point>,
    /// How well it can be seen.
    pub quality: Quality,
    /// How sure the detector is that it is a face.
    pub confidence: f32,
    /// The model that made the signature.
    pub model: String,
}

/// The tags of a photo that somebody else gave it are ours from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhotoAdopted {
    /// Schema version.
    pub v: Version<1>,
    /// The photo.
    pub image_id: ImageId,
    /// Who uploaded it.
    pub uploader: Email,
    /// The original's key, where its row told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_key: Option<String>,
    /// `IMAGE.images` as it stood.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub images: Attributes,
    /// What was taken over.
    pub origin: Origin,
    /// Its tags, by number.
    pub taggings: Vec<AdoptedTagging>,
    /// The event about this photo that this one follows, if it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Seq>,
}

/// A tag as it stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdoptedTagging {
    /// Who is in the photo.
    pub person: PersonId,
    /// `TAGGING.s3Key`, where the row had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_key: Option<String>,
    /// `TAGGING.images`, where the row had some.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub images: Attributes,
    /// `TAGGING.createdAt`.
    pub created_at: Timestamp,
}

impl PhotoAdopted {
    /// The persons in the photo, by number.
    pub fn persons(&self) -> Vec<PersonId> {
        self.taggings.iter().map(|tagging| tagging.person).collect()
    }
}
