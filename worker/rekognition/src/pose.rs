//! Which way a face looks, in degrees, as far as five places tell.

use serde_json::{Map, Value, json};
use sparks_domain::Point;

use crate::looker::Sight;

/// Of the way from the eyes down to the mouth, how far the nose is on a face that looks straight on.
const LEVEL: f32 = 0.49;
/// How far the nose stands out, by the same measure.
const NOSE: f32 = 0.55;

/// Roll and pitch by the landmarks, yaw by the engine's own measure. What cannot be told is absent.
pub fn pose(sight: &Sight) -> Value {
    let mut pose = Map::new();
    let places = places(sight);
    if let Some([left, right, nose, mouth]) = places {
        let along = [right[0] - left[0], right[1] - left[1]];
        pose.insert("Roll".into(), json!(along[1].atan2(along[0]).to_degrees()));
        if let Some(pitch) = pitch(left, right, nose, mouth) {
            pose.insert("Pitch".into(), json!(pitch));
        }
    }
    if let Some(turn) = sight.face.quality.turn {
        let to_the_left = places.is_some_and(|[left, right, nose, _]| nose[0] < (left[0] + right[0]) / 2.0);
        let yaw = turn.clamp(0.0, 1.0) * if to_the_left { -90.0 } else { 90.0 };
        pose.insert("Yaw".into(), json!(yaw));
    }
    pose.into()
}

/// Both eyes, the nose and the middle of the mouth, in pixels.
fn places(sight: &Sight) -> Option<[[f32; 2]; 4]> {
    let (width, height) = sight.photo;
    let place = |point: &Point| [point.x * width, point.y * height];
    let [left, right, nose, mouth_left, mouth_right] = sight.face.landmarks.as_slice() else { return None };
    let [a, b] = [mouth_left, mouth_right].map(place);
    Some([place(left), place(right), place(nose), [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0]])
}

/// Looking up is positive: then the nose comes nearer to the eyes.
fn pitch(left: [f32; 2], right: [f32; 2], nose: [f32; 2], mouth: [f32; 2]) -> Option<f32> {
    let eyes = [(left[0] + right[0]) / 2.0, (left[1] + right[1]) / 2.0];
    let down = [mouth[0] - eyes[0], mouth[1] - eyes[1]];
    let length = down[0] * down[0] + down[1] * down[1];
    if length == 0.0 {
        return None;
    }
    let share = ((nose[0] - eyes[0]) * down[0] + (nose[1] - eyes[1]) * down[1]) / length;
    Some(((LEVEL - share) / NOSE).atan().to_degrees())
}
