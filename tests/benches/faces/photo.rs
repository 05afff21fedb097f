//! The photos that are analyzed.

use image::{RgbImage, imageops};
use sparks_engine::{ImageProcessor, Pixels};
use sparks_media::LocalImageProcessor;

const SIDE: u32 = 1920;

/// Returns a portrait with one face, in the size of the large variant.
pub fn portrait() -> Pixels {
    let photo = open("obama-1.jpg");
    let (width, height) = (photo.width() * SIDE / photo.height(), SIDE);
    pixels(imageops::resize(&photo, width, height, imageops::FilterType::Lanczos3))
}

/// Returns a photo with this many faces, all large enough to be analyzed at this scale.
pub fn row_of(faces: u32) -> Pixels {
    let portrait = imageops::resize(&open("obama-1.jpg"), 384, 480, imageops::FilterType::Lanczos3);
    let mut row = RgbImage::from_pixel(SIDE, 480, image::Rgb([90, 100, 110]));
    for n in 0..faces {
        imageops::replace(&mut row, &portrait, i64::from(n * portrait.width()), 0);
    }
    pixels(row)
}

fn open(name: &str) -> RgbImage {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("photos").join(name);
    let Pixels { width, height, rgb } = LocalImageProcessor::default().decode(&std::fs::read(path).unwrap()).unwrap();
    RgbImage::from_raw(width, height, rgb).unwrap()
}

fn pixels(photo: RgbImage) -> Pixels {
    Pixels { width: photo.width(), height: photo.height(), rgb: photo.into_raw() }
}
