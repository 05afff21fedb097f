use super::{analyze, degradation, open, portrait};
use image::RgbImage;
use image::imageops::{FilterType, blur, resize};
use sparks_faces::jpeg;

fn sharpness(image: &RgbImage) -> f32 {
    let faces = analyze(image);
    assert_eq!(faces.len(), 1);
    faces[0].quality.sharpness
}

#[test]
fn a_crisp_face_is_sharp() {
    for side in [40, 90, 150, 260] {
        let crisp = sharpness(&degradation::webp(&degradation::camera_jpeg(&portrait(side))));
        assert!(crisp > 0.5, "side {side}: {crisp}");
    }
}

#[test]
fn a_blurred_face_is_not_sharp() {
    for (side, sigma) in [(100, 4.0), (150, 5.0), (260, 6.0), (260, 10.0)] {
        let blurred = sharpness(&degradation::camera_jpeg(&blur(&portrait(side), sigma)));
        assert!(blurred < 0.1, "side {side}: {blurred}");
    }
}

#[test]
fn more_blur_is_less_sharp() {
    let image = portrait(160);
    let measured = [0.4, 0.8, 1.5, 3.0, 5.0].map(|sigma| sharpness(&blur(&image, sigma)));
    assert!(measured.is_sorted_by(|a, b| a > b), "{measured:?}");
}

#[test]
fn an_enlarged_face_is_not_sharp() {
    let small = portrait(48);
    let large = resize(&small, small.width() * 6, small.height() * 6, FilterType::Triangle);
    let enlarged = sharpness(&large);
    assert!(enlarged < 0.2, "{enlarged}");
}

#[test]
fn a_small_face_is_found_with_its_size() {
    for side in [24, 28, 32, 36] {
        let faces = analyze(&open(&jpeg(&portrait(side))));
        assert_eq!(faces.len(), 1, "side {side}");
        assert!((faces[0].quality.size - side as f32).abs() < 1.0, "{side}: {}", faces[0].quality.size);
    }
}

#[test]
fn a_tiny_face_is_ignored() {
    for side in 1..12 {
        assert_eq!(analyze(&portrait(side)), [], "side {side}");
    }
}
