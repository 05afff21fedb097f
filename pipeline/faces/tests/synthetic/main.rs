//! Marker faces: drawn, degraded like real photos, detected and recognised.

mod album;
mod degradation;
mod detection;
mod no_faces;
mod quality;
mod recognition;

use image::{Rgb, RgbImage};
use sparks_domain::{DetectedFace, FaceBox};
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::{SyntheticEngine, draw_marker, identity_vector};

fn analyze(image: &RgbImage) -> Vec<DetectedFace> {
    let (width, height) = image.dimensions();
    SyntheticEngine.analyze(&Pixels { width, height, rgb: image.as_raw().clone() })
}

fn open(file: &[u8]) -> RgbImage {
    image::load_from_memory(file).expect("an image").into_rgb8()
}

fn canvas(width: u32, height: u32) -> RgbImage {
    RgbImage::from_pixel(width, height, Rgb([120, 140, 110]))
}

/// Returns one face on a canvas with a margin.
fn portrait(side: u32) -> RgbImage {
    let mut image = canvas(side + 80, side + 60);
    draw_marker(&mut image, 41, 33, side, &identity_vector(7, 0));
    image
}

fn similarity(a: &DetectedFace, b: &DetectedFace) -> f32 {
    match (&a.signature, &b.signature) {
        (Some(a), Some(b)) => a.similarity(b),
        _ => panic!("a face without a signature"),
    }
}

/// Checks that a face is where it was drawn, within 2 % of its side.
#[track_caller]
fn check_bounds(image: &RgbImage, found: FaceBox, drawn: (u32, u32, u32)) {
    let (width, height) = (image.width() as f32, image.height() as f32);
    let found = [found.x * width, found.y * height, found.width * width, found.height * height];
    let drawn = [drawn.0, drawn.1, drawn.2, drawn.2].map(|side| side as f32);
    let allowed = drawn[2] * 0.02;
    assert!(found.iter().zip(drawn).all(|(found, drawn)| (found - drawn).abs() <= allowed), "{found:?}, not {drawn:?}");
}
