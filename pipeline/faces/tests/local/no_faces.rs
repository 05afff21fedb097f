//! Degenerate images, and images without faces.

use super::{ENGINE, analyze};
use image::{Rgb, RgbImage};
use sparks_engine::{FaceEngine, Pixels};

const WHITE: Rgb<u8> = Rgb([255; 3]);
const BLACK: Rgb<u8> = Rgb([0; 3]);

#[test]
fn images_of_any_shape_are_analyzed() {
    for (width, height) in [(1, 1), (1, 2), (3, 1), (31, 33), (16_000, 10), (10, 16_000), (1, 5000), (5000, 1)] {
        let mut rng = fastrand::Rng::with_seed(5);
        let noise = RgbImage::from_fn(width, height, |_, _| Rgb([rng.u8(..), rng.u8(..), rng.u8(..)]));
        assert_eq!(analyze(&noise), [], "{width}x{height}");
    }
}

#[test]
fn pixels_of_the_wrong_length_have_no_faces() {
    for (width, height, bytes) in [(0, 0, 0), (0, 5, 0), (5, 5, 74), (5, 5, 76), (u32::MAX, u32::MAX, 3)] {
        assert_eq!(ENGINE.analyze(&Pixels { width, height, rgb: vec![0; bytes] }), []);
    }
}

#[test]
fn plain_surfaces_gradients_and_noise_have_no_faces() {
    let mut rng = fastrand::Rng::with_seed(7);
    let images = [
        RgbImage::from_pixel(800, 600, BLACK),
        RgbImage::from_pixel(800, 600, WHITE),
        RgbImage::from_fn(800, 600, |x, y| Rgb([(x * 255 / 800) as u8, (y * 255 / 600) as u8, 128])),
        RgbImage::from_fn(800, 600, |_, _| Rgb([rng.u8(..), rng.u8(..), rng.u8(..)])),
        RgbImage::from_fn(800, 600, |x, y| if (x / 20 + y / 20) % 2 == 0 { WHITE } else { BLACK }),
        RgbImage::from_fn(1920, 1280, |x, y| {
            Rgb([((x as f32 / 9.0).sin() * 90.0 + (y as f32 / 7.0).cos() * 30.0 + 125.0) as u8; 3])
        }),
    ];
    for (n, image) in images.iter().enumerate() {
        assert_eq!(analyze(image), [], "image {n}");
    }
}

#[test]
fn drawings_are_not_confident_faces() {
    // A disc with two dots and a line.
    let drawing = RgbImage::from_fn(600, 600, |x, y| {
        let distance = |cx: f32, cy: f32| (x as f32 - cx).hypot(y as f32 - cy);
        let eyes = distance(240.0, 250.0).min(distance(360.0, 250.0)) < 18.0;
        let mouth = (390..404).contains(&y) && (230..370).contains(&x);
        if eyes || mouth || (196.0..204.0).contains(&distance(300.0, 310.0)) { BLACK } else { Rgb([250, 220, 90]) }
    });
    let houses = RgbImage::from_fn(900, 600, |x, y| {
        let window = x % 90 > 25 && x % 90 < 65 && y % 110 > 30 && y % 110 < 80;
        if window { Rgb([60, 70, 90]) } else { Rgb([170, 120, 90]) }
    });
    for image in [drawing, houses] {
        assert!(analyze(&image).iter().all(|face| face.confidence < 0.6));
    }
}
