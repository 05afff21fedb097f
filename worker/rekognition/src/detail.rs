//! A face as answers describe it.

use serde_json::{Map, Value, json};
use sparks_domain::{FaceBox, SeenFace};

use crate::{looker::Sight, members::Members, pose::pose, refusal::Refusal};

/// What more than the usual a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    /// Nothing more.
    Default,
    All,
    AgeRange,
    Gender,
    Emotions,
    /// What no engine of ours tells.
    Untold,
}

const ATTRIBUTES: [(&str, Attribute); 14] = [
    ("DEFAULT", Attribute::Default),
    ("ALL", Attribute::All),
    ("AGE_RANGE", Attribute::AgeRange),
    ("BEARD", Attribute::Untold),
    ("EMOTIONS", Attribute::Emotions),
    ("EYE_DIRECTION", Attribute::Untold),
    ("EYEGLASSES", Attribute::Untold),
    ("EYES_OPEN", Attribute::Untold),
    ("GENDER", Attribute::Gender),
    ("MOUTH_OPEN", Attribute::Untold),
    ("MUSTACHE", Attribute::Untold),
    ("FACE_OCCLUDED", Attribute::Untold),
    ("SMILE", Attribute::Untold),
    ("SUNGLASSES", Attribute::Untold),
];

/// The engine's words for emotions, and the service's.
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

/// What a client wants to know of a face.
#[derive(Debug)]
pub struct Wanted(Vec<Attribute>);

impl Wanted {
    /// The member with this name.
    pub fn read(members: &mut Members, name: &str) -> Result<Self, Refusal> {
        Ok(Self(members.choices(name, &ATTRIBUTES)?.unwrap_or_default()))
    }

    fn has(&self, attribute: Attribute) -> bool {
        self.0.contains(&Attribute::All) || self.0.contains(&attribute)
    }
}

/// A face with everything that is wanted and known.
pub fn detail(sight: &Sight, wanted: &Wanted) -> Value {
    let mut detail = plain(sight);
    let attribute = |name: &str, wanted_too: bool| sight.face.attributes.get(name).filter(|_| wanted_too);
    let guesses = [
        ("AgeRange", attribute("age_range", wanted.has(Attribute::AgeRange)).and_then(age_range)),
        ("Gender", attribute("gender", wanted.has(Attribute::Gender)).and_then(gender)),
        ("Emotions", attribute("emotion", wanted.has(Attribute::Emotions)).and_then(emotions)),
    ];
    detail.extend(guesses.into_iter().filter_map(|(name, guess)| Some((name.to_owned(), guess?))));
    detail.into()
}

/// A face as a comparison shows it.
pub fn compared(sight: &Sight) -> Value {
    plain(sight).into()
}

/// Where a face is, as fractions of the upright photo.
pub fn bounding_box(bounds: FaceBox) -> Value {
    let [left, top, width, height] = <[f32; 4]>::from(bounds);
    json!({ "Left": left, "Top": top, "Width": width, "Height": height })
}

/// How sure the engine is that it is a face, 0 to 100.
pub fn confidence(face: &SeenFace) -> f32 {
    percent(face.confidence)
}

fn percent(share: f32) -> f32 {
    if share.is_finite() { (share * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

fn plain(sight: &Sight) -> Map<String, Value> {
    let Sight { face, brightness, .. } = sight;
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
        ("Pose", pose(sight)),
        ("Quality", json!({ "Brightness": brightness, "Sharpness": percent(face.quality.sharpness) })),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn age_range(guess: &Value) -> Option<Value> {
    Some(json!({ "Low": guess["low"].as_u64()?, "High": guess["high"].as_u64()? }))
}

fn gender(guess: &Value) -> Option<Value> {
    let value = match guess["value"].as_str()? {
        "male" => "Male",
        "female" => "Female",
        _ => return None,
    };
    Some(json!({ "Value": value, "Confidence": percent(guess["confidence"].as_f64()? as f32) }))
}

fn emotions(guess: &Value) -> Option<Value> {
    let ours = guess["value"].as_str()?;
    let (_, name) = EMOTIONS.iter().find(|(word, _)| *word == ours)?;
    Some(json!([{ "Type": name, "Confidence": percent(guess["confidence"].as_f64()? as f32) }]))
}
