//! Face attributes of Rekognition, as events store them.

use std::collections::BTreeMap;

use aws_sdk_rekognition::types::FaceDetail;
use serde_json::{Value, json};

/// Converts all attributes of the response. Age, gender and emotion have the same names as those of the local engine.
pub(super) fn attributes(detail: &FaceDetail) -> BTreeMap<String, Value> {
    let mut known = BTreeMap::new();
    let mut put = |name: &str, value: Option<Value>| known.extend(value.map(|value| (name.to_owned(), value)));
    put("age_range", detail.age_range().and_then(|age| Some(json!({ "low": age.low()?, "high": age.high()? }))));
    put(
        "gender",
        detail.gender().and_then(|gender| {
            Some(json!({ "value": gender.value()?.as_str().to_lowercase(), "confidence": share(gender.confidence()?) }))
        }),
    );
    let emotions = detail
        .emotions()
        .iter()
        .filter_map(|emotion| Some((emotion.confidence()?, emotion.r#type()?.as_str().to_lowercase())));
    let emotion = emotions.max_by(|a, b| a.0.total_cmp(&b.0));
    put("emotion", emotion.map(|(confidence, value)| json!({ "value": value, "confidence": share(confidence) })));
    macro_rules! yes_or_no {
        ($($name:literal: $field:ident),*) => {$(
            put($name, detail.$field().map(|found| {
                json!({ "value": found.value(), "confidence": found.confidence().map(share) })
            }));
        )*};
    }
    yes_or_no!(
        "smile": smile, "eyeglasses": eyeglasses, "sunglasses": sunglasses, "beard": beard, "mustache": mustache,
        "eyes_open": eyes_open, "mouth_open": mouth_open, "face_occluded": face_occluded
    );
    put("brightness", detail.quality().and_then(|quality| Some(json!(share(quality.brightness()?)))));
    known
}

/// Converts percent to a share with four decimals.
fn share(percent: f32) -> f64 {
    (f64::from(percent) * 100.0).round() / 1e4
}
