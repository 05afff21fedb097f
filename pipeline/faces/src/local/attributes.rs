//! Estimates of age, gender and emotion. No decision depends on them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::align::{AlignedCrop, Landmarks, align};
use super::embed::{ARCFACE_SIDE, ARCFACE_TEMPLATE, to_tensor};
use super::image_view::ImageView;
use super::models::{EMOTION, FACERES};
use super::network::{LoadError, Network};
use super::thread_pools::PooledThread;

/// Side and zoom of the crop for the age and gender model; 1 is the zoom of ArcFace.
const FACERES_VIEW: (usize, f32) = (224, 1.0);
/// Side and zoom of the crop for the emotion model: eyes and mouth fill it.
const EMOTION_VIEW: (usize, f32) = (64, 1.2);
/// Channel means of the age and gender model: blue, green, red.
const FACERES_MEAN: [f32; 3] = [103.939, 116.779, 123.68];
/// Emotions in the order of the model's output.
const EMOTIONS: [&str; 7] = ["angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"];
/// Quantiles of the age distribution that bound the age range.
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

    /// Estimates the attributes of the face with these landmarks. Returns `None` if the landmarks coincide.
    pub fn estimate(
        &self,
        image: &ImageView<'_>,
        landmarks: &Landmarks,
        thread: &PooledThread<'_>,
    ) -> Option<BTreeMap<String, Value>> {
        let mean = |[red, green, blue]: [f32; 3]| std::array::from_fn(|c| [blue, green, red][c] - FACERES_MEAN[c]);
        let [male, ages] = self.faceres.run(to_tensor::<3>(&view(image, landmarks, FACERES_VIEW)?, mean), thread);
        let grey = |[red, green, blue]: [f32; 3]| [(0.2989 * red + 0.587 * green + 0.114 * blue) / 127.5 - 1.0];
        let [emotions] = self.emotion.run(to_tensor::<1>(&view(image, landmarks, EMOTION_VIEW)?, grey), thread);
        let estimates =
            [("age_range", age_range(&ages)), ("gender", gender(*male.first()?)), ("emotion", emotion(&emotions)?)];
        Some(estimates.map(|(name, estimate)| (name.to_owned(), estimate)).into())
    }
}

/// Crops the face with the side and zoom of a model.
fn view(image: &ImageView<'_>, landmarks: &Landmarks, (side, zoom): (usize, f32)) -> Option<AlignedCrop> {
    let centre = ARCFACE_SIDE as f32 / 2.0;
    let scale = side as f32 / ARCFACE_SIDE as f32;
    let template = ARCFACE_TEMPLATE.map(|point| point.map(|axis| ((axis - centre) * zoom + centre) * scale));
    align(image, landmarks, &template, side)
}

/// Returns the likely age range in years.
fn age_range(ages: &[f32]) -> Value {
    let [low, high] = RANGE.map(|share| {
        let mut sum = 0.0;
        let reached = ages.iter().position(|probability| {
            sum += probability;
            sum >= share
        });
        reached.unwrap_or(ages.len())
    });
    json!({ "low": low, "high": high })
}

/// Returns the more probable gender.
fn gender(male: f32) -> Value {
    let (value, confidence) = if male > 0.5 { ("male", male) } else { ("female", 1.0 - male) };
    json!({ "value": value, "confidence": rounded(confidence) })
}

/// Returns the most probable emotion.
fn emotion(probabilities: &[f32]) -> Option<Value> {
    let (value, confidence) = EMOTIONS.iter().zip(probabilities).max_by(|a, b| a.1.total_cmp(b.1))?;
    Some(json!({ "value": value, "confidence": rounded(*confidence) }))
}

/// Rounds to two digits, the precision of the estimate.
fn rounded(confidence: f32) -> f64 {
    (f64::from(confidence) * 100.0).round() / 100.0
}
