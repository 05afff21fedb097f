//! Marker faces: drawn, worn down the way photos are, found and told apart.

mod album;
mod finding;
mod nothing;
mod quality;
mod recognition;
mod wear;

use image::{Rgb, RgbImage};
use sparks_domain::{FaceBox, SeenFace};
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::{Synthetic, draw_marker, identity_vector};

fn look(picture: &RgbImage) -> Vec<SeenFace> {
    let (width, height) = picture.dimensions();
    Synthetic.look(&Pixels { width, height, rgb: picture.as_raw().clone() })
}

fn open(file: &[u8]) -> RgbImage {
    image::load_from_memory(file).expect("a picture").into_rgb8()
}

fn canvas(width: u32, height: u32) -> RgbImage {
    RgbImage::from_pixel(width, height, Rgb([120, 140, 110]))
}

/// One face on a canvas, with room around it.
fn portrait(side: u32) -> RgbImage {
    let mut picture = canvas(side + 80, side + 60);
    draw_marker(&mut picture, 41, 33, side, &identity_vector(7, 0));
    picture
}

fn similarity(a: &SeenFace, b: &SeenFace) -> f32 {
    match (&a.signature, &b.signature) {
        (Some(a), Some(b)) => a.similarity(b),
        _ => panic!("a face without a signature"),
    }
}

/// That a face is where it was drawn, within two hundredths of its side.
#[track_caller]
fn check_bounds(picture: &RgbImage, found: FaceBox, drawn: (u32, u32, u32)) {
    let (width, height) = (picture.width() as f32, picture.height() as f32);
    let found = [found.x * width, found.y * height, found.width * width, found.height * height];
    let drawn = [drawn.0, drawn.1, drawn.2, drawn.2].map(|side| side as f32);
    let allowed = drawn[2] * 0.02;
    assert!(found.iter().zip(drawn).all(|(found, drawn)| (found - drawn).abs() <= allowed), "{found:?}, not {drawn:?}");
}
