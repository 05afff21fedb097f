//! The facts of one photo, as an event keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Candidate, PersonId, Signature};

/// The object a photo came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The original's key.
    pub key: String,
    /// The version of the object that was read (its eTag).
    pub version: String,
    /// Orders versions of the same key, where the store tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// Size of the original.
    pub bytes: u64,
    /// What the magic bytes say it is; absent where they say nothing we know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The name the file had at its owner's, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

/// The time in the photo's EXIF: local time, with its offset only where the camera wrote one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TakenAt(pub String);

impl TakenAt {
    /// Seconds since 1970, a local time without offset being read as UTC.
    pub fn unix_seconds(&self) -> Option<i64> {
        let with_offset = self.0.parse::<jiff::Timestamp>().ok();
        let local = || self.0.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
        with_offset.or_else(|| Some(local()?.timestamp())).map(jiff::Timestamp::as_second)
    }
}

/// One rendered picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its object key.
    pub key: String,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Its size as an object.
    pub bytes: u64,
}

/// The pictures made of every photo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variants {
    /// For looking at.
    pub large: Variant,
    /// For the grid.
    pub medium: Variant,
}

/// A rectangle as fractions of the upright photo, so that it fits every variant: x, y, width, height.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 4]", into = "[f32; 4]")]
pub struct FaceBox {
    /// Left edge.
    pub x: f32,
    /// Upper edge.
    pub y: f32,
    /// Width.
    pub width: f32,
    /// Height.
    pub height: f32,
}

impl From<[f32; 4]> for FaceBox {
    fn from([x, y, width, height]: [f32; 4]) -> Self {
        Self { x, y, width, height }
    }
}

impl From<FaceBox> for [f32; 4] {
    fn from(b: FaceBox) -> Self {
        [b.x, b.y, b.width, b.height].map(|side| round(side, 1e5))
    }
}

/// A point as fractions of the upright photo.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 2]", into = "[f32; 2]")]
pub struct Point {
    /// From the left.
    pub x: f32,
    /// From the top.
    pub y: f32,
}

impl From<[f32; 2]> for Point {
    fn from([x, y]: [f32; 2]) -> Self {
        Self { x, y }
    }
}

impl From<Point> for [f32; 2] {
    fn from(p: Point) -> Self {
        [p.x, p.y].map(|side| round(side, 1e5))
    }
}

/// How well a face can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The shorter side of its box, in pixels of the large variant.
    pub size: f32,
    /// 0 is a blur, 1 is crisp.
    pub sharpness: f32,
    /// How far it looks away: 0 is frontal, 1 is a profile. Absent where the analyzer cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<f32>,
}

/// A face as an analyzer saw it, before anybody decided who it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenFace {
    /// Where it is.
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth; empty where the analyzer has none.
    pub landmarks: Vec<Point>,
    /// How well it can be seen.
    pub quality: Quality,
    /// How sure the detector is that it is a face.
    pub confidence: f32,
    /// Age, gender, emotion and the like, where they are on.
    pub attributes: BTreeMap<String, serde_json::Value>,
    /// The model that made the signature.
    pub model: String,
    /// What it looks like, where the analyzer gives it out. Never enters the log.
    pub signature: Option<Signature>,
}

/// A face and what was decided about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Face {
    /// Where it is.
    #[serde(rename = "box")]
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<Point>,
    /// How well it can be seen.
    pub quality: Quality,
    /// How sure the detector is that it is a face.
    pub confidence: f32,
    /// Age, gender, emotion and the like, where they are on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, serde_json::Value>,
    /// The model that made the signature.
    pub model: String,
    /// The nearest persons, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The similarity from which a candidate is the person.
    pub threshold: f32,
    /// Who it is, or why nobody.
    pub verdict: Verdict,
    /// Whether its signature is one the person is recognised by from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template: bool,
}

/// Who a face is, or why nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is near enough to somebody known, or to a better face of a stranger in the same photo.
    Matched(PersonId),
    /// It is a stranger's best face: the person exists from now on.
    Founded(PersonId),
    /// It is like nobody known, and too poor to found a person.
    TooPoor,
    /// It is like several persons, and nearly as like one as the other.
    Ambiguous,
}

impl Verdict {
    /// The person, if the face is somebody's.
    pub fn person(self) -> Option<PersonId> {
        match self {
            Self::Matched(person) | Self::Founded(person) => Some(person),
            Self::TooPoor | Self::Ambiguous => None,
        }
    }
}

/// Why a photo cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// For programs.
    pub code: RejectCode,
    /// For people: names the thing and its measure.
    pub message: String,
}

/// The kinds of photos that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectCode {
    /// Nothing in it.
    Empty,
    /// More bytes than the limit.
    TooManyBytes,
    /// More pixels, or a longer side, than the limit.
    TooManyPixels,
    /// More EXIF or ICC than the limit.
    TooMuchMetadata,
    /// Not a picture, or of a kind we do not take.
    UnsupportedFormat,
    /// A picture that ends too early or contradicts itself.
    Damaged,
}

/// Scores and places are kept to a few digits: enough for every use, and the same text on every machine.
/// What is no number counts as nothing: JSON could not hold it.
pub(crate) fn round(value: f32, scale: f64) -> f32 {
    if value.is_finite() { ((f64::from(value) * scale).round() / scale) as f32 } else { 0.0 }
}

impl SeenFace {
    /// The face as an event will hold it, so that what is decided now is what is read later.
    pub(crate) fn rounded(mut self) -> Self {
        self.bounds = <[f32; 4]>::from(self.bounds).into();
        for point in &mut self.landmarks {
            *point = <[f32; 2]>::from(*point).into();
        }
        let Quality { size, sharpness, turn } = self.quality;
        self.quality = Quality {
            size: round(size, 1e2),
            sharpness: round(sharpness, 1e4),
            turn: turn.map(|turn| round(turn, 1e4)),
        };
        self.confidence = round(self.confidence, 1e4);
        self
    }
}
