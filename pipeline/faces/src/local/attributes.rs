//! Guesses of age, gender and emotion. They are guesses: nothing is decided by them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::align::{Crop, Landmarks, align};
use super::embed::{ARCFACE, ARCFACE_SIDE, planes};
use super::lanes::Lane;
use super::models::{EMOTION, FACERES};
use super::network::{LoadError, Network};
use super::picture::Picture;

/// The side of what the model for age and gender sees, and how near: 1 is as near as ArcFace.
const FACERES_VIEW: (usize, f32) = (224, 1.0);
/// The side of what the model for the emotion sees, and how near: eyes and mouth fill it.
const EMOTION_VIEW: (usize, f32) = (64, 1.2);
/// What the model for age and gender subtracts: blue, green, red.
const FACERES_MEAN: [f32; 3] = [103.939, 116.779, 123.68];
/// In the order of the model's output.
const EMOTIONS: [&str; 7] = ["angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"];
/// The age is between these shares of the model's belief.
const RANGE: [f32; 2] = [0.2, 0.8];

/// The loaded models.
pub struct Attributes {
    faceres: Network<2>,
    emotion: Network<1>,
}

impl Attributes {
    /// Loads the models.
    pub fn load() -> Result<Self, LoadError> {
        Ok(Self {
            faceres: Network::load(&FACERES, ["out_gender_pred_Sigmoid", "out_age_pred_Softmax"])?,
            emotion: Network::load(&EMOTION, ["out_Identity"])?,
        })
    }

    /// What the face with these landmarks seems to be. `None` where the landmarks are one place.
    pub fn guess(
        &self,
        picture: &Picture<'_>,
        landmarks: &Landmarks,
        lane: &Lane<'_>,
    ) -> Option<BTreeMap<String, Value>> {
        let mean = |[red, green, blue]: [f32; 3]| std::array::from_fn(|c| [blue, green, red][c] - FACERES_MEAN[c]);
        let [male, ages] = self.faceres.run(planes::<3>(&view(picture, landmarks, FACERES_VIEW)?, mean), lane);
        let grey = |[red, green, blue]: [f32; 3]| [(0.2989 * red + 0.587 * green + 0.114 * blue) / 127.5 - 1.0];
        let [emotions] = self.emotion.run(planes::<1>(&view(picture, landmarks, EMOTION_VIEW)?, grey), lane);
        let guesses =
            [("age_range", age_range(&ages)), ("gender", gender(*male.first()?)), ("emotion", emotion(&emotions)?)];
        Some(guesses.map(|(name, guess)| (name.to_owned(), guess)).into())
    }
}

/// The face as near as a model wants it.
fn view(picture: &Picture<'_>, landmarks: &Landmarks, (side, near): (usize, f32)) -> Option<Crop> {
    let middle = ARCFACE_SIDE as f32 / 2.0;
    let scale = side as f32 / ARCFACE_SIDE as f32;
    let template = ARCFACE.map(|place| place.map(|axis| ((axis - middle) * near + middle) * scale));
    align(picture, landmarks, &template, side)
}

/// Between which years the age probably is.
fn age_range(ages: &[f32]) -> Value {
    let [low, high] = RANGE.map(|share| {
        let mut sum = 0.0;
        let reached = ages.iter().position(|belief| {
            sum += belief;
            sum >= share
        });
        reached.unwrap_or(ages.len())
    });
    json!({ "low": low, "high": high })
}

/// The likelier gender.
fn gender(male: f32) -> Value {
    let (value, confidence) = if male > 0.5 { ("male", male) } else { ("female", 1.0 - male) };
    json!({ "value": value, "confidence": rounded(confidence) })
}

/// The likeliest emotion.
fn emotion(beliefs: &[f32]) -> Option<Value> {
    let (value, confidence) = EMOTIONS.iter().zip(beliefs).max_by(|a, b| a.1.total_cmp(b.1))?;
    Some(json!({ "value": value, "confidence": rounded(*confidence) }))
}

/// Two digits: a guess has no more.
fn rounded(confidence: f32) -> f64 {
    (f64::from(confidence) * 100.0).round() / 100.0
}
