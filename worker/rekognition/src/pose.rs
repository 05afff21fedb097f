//! Head pose in degrees, estimated from five landmarks.

use serde_json::{Map, Value, json};
use sparks_domain::Point;

use crate::photo_analyzer::AnalyzedFace;

/// Position of the nose of a frontal face on the line from the eyes to the mouth, as a fraction.
const FRONTAL_NOSE: f32 = 0.49;
/// Depth of the nose relative to the same distance.
const NOSE_DEPTH: f32 = 0.55;

/// Returns roll and pitch computed from the landmarks, and yaw from the head rotation that the engine measured. Unknown values are
/// absent.
pub fn pose(analyzed: &AnalyzedFace) -> Value {
    let mut pose = Map::new();
    let points = points(analyzed);
    if let Some([left, right, nose, mouth]) = points {
        let along = [right[0] - left[0], right[1] - left[1]];
        pose.insert("Roll".into(), json!(along[1].atan2(along[0]).to_degrees()));
        if let Some(pitch) = pitch(left, right, nose, mouth) {
            pose.insert("Pitch".into(), json!(pitch));
        }
    }
    if let Some(turn) = analyzed.face.quality.turn {
        let is_left = points.is_some_and(|[left, right, nose, _]| nose[0] < (left[0] + right[0]) / 2.0);
        let yaw = turn.clamp(0.0, 1.0) * if is_left { -90.0 } else { 90.0 };
        pose.insert("Yaw".into(), json!(yaw));
    }
    pose.into()
}

/// Returns both eyes, the nose and the middle of the mouth in pixels.
fn points(analyzed: &AnalyzedFace) -> Option<[[f32; 2]; 4]> {
    let (width, height) = analyzed.photo_size;
    let to_pixels = |point: &Point| [point.x * width, point.y * height];
    let [left, right, nose, mouth_left, mouth_right] = analyzed.face.landmarks.as_slice() else { return None };
    let [a, b] = [mouth_left, mouth_right].map(to_pixels);
    Some([to_pixels(left), to_pixels(right), to_pixels(nose), [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0]])
}

/// Returns the pitch. It is positive if the face looks up, which moves the nose closer to the eyes.
fn pitch(left: [f32; 2], right: [f32; 2], nose: [f32; 2], mouth: [f32; 2]) -> Option<f32> {
    let eyes = [(left[0] + right[0]) / 2.0, (left[1] + right[1]) / 2.0];
    let down = [mouth[0] - eyes[0], mouth[1] - eyes[1]];
    let length = down[0] * down[0] + down[1] * down[1];
    if length == 0.0 {
        return None;
    }
    let fraction = ((nose[0] - eyes[0]) * down[0] + (nose[1] - eyes[1]) * down[1]) / length;
    Some(((FRONTAL_NOSE - fraction) / NOSE_DEPTH).atan().to_degrees())
}
