//! The facts about one photo that events record: source, variants, faces, verdicts and rejections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Candidate, PersonId, Signature};

/// The object that a photo was read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceObject {
    /// The original's key.
    pub key: String,
    /// The version of the object that was read (its eTag).
    pub version: String,
    /// Orders versions of the same key, if the store has sequencers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequencer: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The type by its magic bytes; absent if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The name of the uploaded file, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

/// The time in the photo's EXIF: local time, with an offset only if the camera wrote one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TakenAt(pub String);

impl TakenAt {
    /// Returns seconds since 1970. A local time without offset is read as UTC.
    pub fn unix_seconds(&self) -> Option<i64> {
        let with_offset = self.0.parse::<jiff::Timestamp>().ok();
        let local = || self.0.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
        with_offset.or_else(|| Some(local()?.timestamp())).map(jiff::Timestamp::as_second)
    }
}

/// One rendered variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its object key.
    pub key: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes in hexadecimal, if the worker rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The variants of a photo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variants {
    /// For viewing.
    pub large: Variant,
    /// For grids of photos.
    pub medium: Variant,
}

/// A rectangle as fractions of the upright photo, valid for every variant: x, y, width, height.
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

/// The quality of a face.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The shorter side of its box, in pixels of the large variant.
    pub size: f32,
    /// From 0 (blurred) to 1 (sharp).
    pub sharpness: f32,
    /// From 0 (frontal) to 1 (in profile). Absent if the analyzer does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<f32>,
}

/// A face as an analyzer detected it, before identification.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectedFace {
    /// Its position.
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth; empty if the analyzer has none.
    pub landmarks: Vec<Point>,
    /// Its quality.
    pub quality: Quality,
    /// The detector's confidence.
    pub confidence: f32,
    /// Age, gender, emotion and others, if enabled.
    pub attributes: BTreeMap<String, serde_json::Value>,
    /// The model that computed the signature.
    pub model: String,
    /// The embedding, if the analyzer returns one. Never enters the log.
    pub signature: Option<Signature>,
}

/// A face and the verdict on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Face {
    /// Its position.
    #[serde(rename = "box")]
    pub bounds: FaceBox,
    /// Eyes, nose, corners of the mouth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landmarks: Vec<Point>,
    /// Its quality.
    pub quality: Quality,
    /// The detector's confidence.
    pub confidence: f32,
    /// Age, gender, emotion and others, if enabled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, serde_json::Value>,
    /// The model that computed the signature.
    pub model: String,
    /// The nearest persons, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The similarity from which a candidate matched.
    pub threshold: f32,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it is a template of its person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template: bool,
}

/// The person of a face, or why it is unidentified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The face matches a person, or a better face of a new person in the same photo.
    Matched(PersonId),
    /// The face matches no person and is the best of a new person.
    #[serde(rename = "founded")]
    NewPerson(PersonId),
    /// The face matches no person, and its quality is too low for a new person.
    TooPoor,
    /// The face matches several persons within the margin.
    Ambiguous,
}

impl Verdict {
    /// Returns the person, if the face is identified.
    pub fn person(self) -> Option<PersonId> {
        match self {
            Self::Matched(person) | Self::NewPerson(person) => Some(person),
            Self::TooPoor | Self::Ambiguous => None,
        }
    }
}

/// Why a photo is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// For programs.
    pub code: RejectCode,
    /// For people: names the problem with its measurement.
    pub message: String,
}

/// The reasons for rejecting a photo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectCode {
    /// The file is empty.
    Empty,
    /// More bytes than the limit.
    TooManyBytes,
    /// More pixels, or a longer side, than the limit.
    TooManyPixels,
    /// More EXIF or ICC than the limit.
    TooMuchMetadata,
    /// Not an image, or of an unsupported format.
    UnsupportedFormat,
    /// An image that is truncated or inconsistent.
    Damaged,
}

/// Rounds scores and coordinates to a few digits, so that their text is the same on every machine. A value that is not
/// finite becomes 0: JSON cannot represent it.
pub(crate) fn round(value: f32, scale: f64) -> f32 {
    if value.is_finite() { ((f64::from(value) * scale).round() / scale) as f32 } else { 0.0 }
}

impl DetectedFace {
    /// Returns the face as an event will record it, so that decisions are based on exactly the recorded values.
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
