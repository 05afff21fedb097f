//! The `FaceDetail` and `ComparedFace` structures of responses.

use serde_json::{Map, Value, json};
use sparks_domain::{DetectedFace, FaceBox};

use crate::{api_error::ApiError, member_reader::MemberReader, photo_analyzer::AnalyzedFace, pose::pose};

/// The facial attributes that a client can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    /// No additional attributes.
    Default,
    All,
    AgeRange,
    Gender,
    Emotions,
    /// An attribute that the engines do not compute.
    Unsupported,
}

const ATTRIBUTES: [(&str, Attribute); 14] = [
    ("DEFAULT", Attribute::Default),
    ("ALL", Attribute::All),
    ("AGE_RANGE", Attribute::AgeRange),
    ("BEARD", Attribute::Unsupported),
    ("EMOTIONS", Attribute::Emotions),
    ("EYE_DIRECTION", Attribute::Unsupported),
    ("EYEGLASSES", Attribute::Unsupported),
    ("EYES_OPEN", Attribute::Unsupported),
    ("GENDER", Attribute::Gender),
    ("MOUTH_OPEN", Attribute::Unsupported),
    ("MUSTACHE", Attribute::Unsupported),
    ("FACE_OCCLUDED", Attribute::Unsupported),
    ("SMILE", Attribute::Unsupported),
    ("SUNGLASSES", Attribute::Unsupported),
];

/// Names of emotions in the engine and in the API.
const EMOTIONS: [(&str, &str); 7] = [
    ("angry", "ANGRY"),
    ("disgust", "DISGUSTED"),
    ("fear", "FEAR"),
    ("happy", "HAPPY"),
    ("sad", "SAD"),
    ("surprise", "SURPRISED"),
    ("neutral", "CALM"),
];

const LANDMARKS: [&str; 5] = ["eyeLeft", "eyeRight", "nose", "mouthLeft", "mouthRight"];

/// The attributes requested by a client.
#[derive(Debug)]
pub struct RequestedAttributes(Vec<Attribute>);

impl RequestedAttributes {
    /// Reads the member with this name.
    pub fn read(members: &mut MemberReader, name: &str) -> Result<Self, ApiError> {
        Ok(Self(members.choices(name, &ATTRIBUTES)?.unwrap_or_default()))
    }

    fn contains(&self, attribute: Attribute) -> bool {
        self.0.contains(&Attribute::All) || self.0.contains(&attribute)
    }
}

/// Returns a `FaceDetail` with those of the requested attributes that are known.
pub fn face_detail(analyzed: &AnalyzedFace, requested: &RequestedAttributes) -> Value {
    let mut detail = compared_face_members(analyzed);
    let attribute = |name: &str, is_requested: bool| analyzed.face.attributes.get(name).filter(|_| is_requested);
    let estimates = [
        ("AgeRange", attribute("age_range", requested.contains(Attribute::AgeRange)).and_then(age_range)),
        ("Gender", attribute("gender", requested.contains(Attribute::Gender)).and_then(gender)),
        ("Emotions", attribute("emotion", requested.contains(Attribute::Emotions)).and_then(emotions)),
    ];
    detail.extend(estimates.into_iter().filter_map(|(name, estimate)| Some((name.to_owned(), estimate?))));
    detail.into()
}

/// Returns a `ComparedFace`.
pub fn compared_face(analyzed: &AnalyzedFace) -> Value {
    compared_face_members(analyzed).into()
}

/// Returns a `BoundingBox`, as fractions of the photo after orientation.
pub fn bounding_box(bounds: FaceBox) -> Value {
    let [left, top, width, height] = <[f32; 4]>::from(bounds);
    json!({ "Left": left, "Top": top, "Width": width, "Height": height })
}

/// Returns the confidence of the detection in percent.
pub fn confidence(face: &DetectedFace) -> f32 {
    percent(face.confidence)
}

fn percent(fraction: f32) -> f32 {
    if fraction.is_finite() { (fraction * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

fn compared_face_members(analyzed: &AnalyzedFace) -> Map<String, Value> {
    let AnalyzedFace { face, brightness, .. } = analyzed;
    let landmarks: Vec<Value> = if face.landmarks.len() == LANDMARKS.len() {
        let landmark =
            |(name, point): (&&str, &sparks_domain::Point)| json!({ "Type": name, "X": point.x, "Y": point.y });
        LANDMARKS.iter().zip(&face.landmarks).map(landmark).collect()
    } else {
        Vec::new()
    };
    let members = [
        ("BoundingBox", bounding_box(face.bounds)),
        ("Confidence", json!(confidence(face))),
        ("Landmarks", landmarks.into()),
        ("Pose", pose(analyzed)),
        ("Quality", json!({ "Brightness": brightness, "Sharpness": percent(face.quality.sharpness) })),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn age_range(estimate: &Value) -> Option<Value> {
    Some(json!({ "Low": estimate["low"].as_u64()?, "High": estimate["high"].as_u64()? }))
}

fn gender(estimate: &Value) -> Option<Value> {
    let value = match estimate["value"].as_str()? {
        "male" => "Male",
        "female" => "Female",
        _ => return None,
    };
    Some(json!({ "Value": value, "Confidence": percent(estimate["confidence"].as_f64()? as f32) }))
}

fn emotions(estimate: &Value) -> Option<Value> {
    let emotion = estimate["value"].as_str()?;
    let (_, name) = EMOTIONS.iter().find(|(engine_name, _)| *engine_name == emotion)?;
    Some(json!([{ "Type": name, "Confidence": percent(estimate["confidence"].as_f64()? as f32) }]))
}
