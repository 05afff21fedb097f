//! Plausibility of detected landmarks.

use super::align::SimilarityTransform;
use super::centerface::Detection;
use super::embed::ARCFACE_TEMPLATE;

/// Largest root-mean-square error of the landmarks against a frontal face, relative to the distance of eyes and mouth.
const MAX_ERROR: f32 = 0.35;

/// Returns whether the landmarks are arranged as in a face, in any rotation, and lie in its bounding box.
pub fn is_plausible(detection: &Detection) -> bool {
    let [width, height] = detection.size();
    let is_near = |at: f32, start: f32, size: f32| at > start - 0.25 * size && at < start + 1.25 * size;
    let is_inside = detection
        .landmarks
        .iter()
        .all(|[x, y]| is_near(*x, detection.top_left[0], width) && is_near(*y, detection.top_left[1], height));
    is_inside
        && (0.3..3.0).contains(&(width / height))
        && landmark_error(detection).is_some_and(|error| error < MAX_ERROR)
}

/// Returns the error of the landmarks after alignment to the ArcFace template, relative to the distance of eyes and mouth.
fn landmark_error(detection: &Detection) -> Option<f32> {
    let alignment = SimilarityTransform::estimate(&detection.landmarks, &ARCFACE_TEMPLATE)?;
    let squares = detection.landmarks.iter().zip(&ARCFACE_TEMPLATE).map(|(landmark, expected)| {
        let [x, y] = alignment.apply(*landmark);
        (x - expected[0]).powi(2) + (y - expected[1]).powi(2)
    });
    Some((squares.sum::<f32>() / 5.0).sqrt() / (ARCFACE_TEMPLATE[3][1] - ARCFACE_TEMPLATE[0][1]))
}
