//! Marker faces: drawing them into photos, and finding them again.

mod album;
mod backdrop;
mod frame;
mod identity;
mod marker;
mod place;
mod raster;
mod reading;

use std::collections::BTreeMap;

use sparks_domain::{FaceBox, Point, Quality, SeenFace, Signature};
use sparks_engine::{FaceEngine, Pixels};

pub use album::{AlbumSpec, DEFAULT_NOISE, SyntheticPhoto, jpeg};
pub use identity::{DIMENSIONS, identity_vector, with_noise};
pub use marker::draw_marker;

use raster::Raster;
use reading::Reading;

/// Finds marker faces. Knows no identities: it measures, and the decision compares.
#[derive(Debug, Clone, Copy, Default)]
pub struct Synthetic;

/// What events call the measure behind the signatures; signatures of another model cannot be compared with these.
pub const MODEL: &str = "synthetic-1";

/// Eyes, nose and corners of the mouth, as fractions of the marker.
const LANDMARKS: [(f32, f32); 5] = [(0.3, 0.38), (0.7, 0.38), (0.5, 0.56), (0.35, 0.74), (0.65, 0.74)];

impl FaceEngine for Synthetic {
    fn look(&self, pixels: &Pixels) -> Vec<SeenFace> {
        let Some(raster) = Raster::of(pixels) else { return Vec::new() };
        let mut frames = frame::find(&raster);
        frames.sort_unstable_by_key(|frame| (frame.top, frame.left));
        frames.iter().filter_map(|frame| reading::read(&raster, frame)).filter_map(|r| seen(&raster, r)).collect()
    }
}

fn seen(raster: &Raster<'_>, reading: Reading) -> Option<SeenFace> {
    let (across, down) = (raster.width as f32, raster.height as f32);
    let Reading { left, top, width, height, .. } = reading;
    let point = |(u, v): (f32, f32)| Point { x: (left + u * width) / across, y: (top + v * height) / down };
    Some(SeenFace {
        bounds: FaceBox { x: left / across, y: top / down, width: width / across, height: height / down },
        landmarks: LANDMARKS.map(point).to_vec(),
        quality: Quality { size: width.min(height), sharpness: reading.sharpness, turn: None },
        confidence: reading.confidence,
        attributes: BTreeMap::new(),
        model: MODEL.to_owned(),
        signature: Some(Signature::quantise(&reading.vector)?),
    })
}
