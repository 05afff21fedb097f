//! Synthetic marker faces: drawing them into photos, and detecting them.

mod album;
mod backdrop;
mod identity;
mod marker;
mod marker_frame;
mod marker_reader;
mod placement;
mod raster;

use std::collections::BTreeMap;

use sparks_domain::{DetectedFace, FaceBox, Point, Quality, Signature};
use sparks_engine::{FaceEngine, Pixels};

pub use album::{AlbumSpec, DEFAULT_NOISE, SyntheticPhoto, jpeg};
pub use identity::{DIMENSIONS, identity_vector, with_noise};
pub use marker::draw_marker;

use marker_reader::{MarkerReading, read_marker};
use raster::Raster;

/// Detects marker faces and measures their embeddings. It knows no identities.
#[derive(Debug, Clone, Copy, Default)]
pub struct SyntheticEngine;

/// The model name in events. Signatures of different models cannot be compared.
pub const MODEL: &str = "synthetic-1";

/// Eyes, nose and mouth corners, as fractions of the marker.
const LANDMARKS: [(f32, f32); 5] = [(0.3, 0.38), (0.7, 0.38), (0.5, 0.56), (0.35, 0.74), (0.65, 0.74)];

impl FaceEngine for SyntheticEngine {
    fn analyze(&self, pixels: &Pixels) -> Vec<DetectedFace> {
        let Some(raster) = Raster::from_pixels(pixels) else { return Vec::new() };
        let mut frames = marker_frame::find(&raster);
        frames.sort_unstable_by_key(|frame| (frame.top, frame.left));
        let readings = frames.iter().filter_map(|frame| read_marker(&raster, frame));
        readings.filter_map(|reading| to_detected_face(&raster, reading)).collect()
    }
}

fn to_detected_face(raster: &Raster<'_>, reading: MarkerReading) -> Option<DetectedFace> {
    let (image_width, image_height) = (raster.width as f32, raster.height as f32);
    let MarkerReading { left, top, width, height, .. } = reading;
    let point =
        |(u, v): (f32, f32)| Point { x: (left + u * width) / image_width, y: (top + v * height) / image_height };
    Some(DetectedFace {
        bounds: FaceBox {
            x: left / image_width,
            y: top / image_height,
            width: width / image_width,
            height: height / image_height,
        },
        landmarks: LANDMARKS.map(point).to_vec(),
        quality: Quality { size: width.min(height), sharpness: reading.sharpness, turn: None },
        confidence: reading.confidence,
        attributes: BTreeMap::new(),
        model: MODEL.to_owned(),
        signature: Some(Signature::quantise(&reading.vector)?),
    })
}
