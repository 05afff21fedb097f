use super::{look, open, portrait, wear};
use image::RgbImage;
use image::imageops::{FilterType, blur, resize};
use sparks_faces::jpeg;

fn sharpness(picture: &RgbImage) -> f32 {
    let faces = look(picture);
    assert_eq!(faces.len(), 1);
    faces[0].quality.sharpness
}

#[test]
fn a_crisp_face_is_sharp() {
    for side in [40, 90, 150, 260] {
        let crisp = sharpness(&wear::webp(&wear::camera(&portrait(side))));
        assert!(crisp > 0.5, "side {side}: {crisp}");
    }
}

#[test]
fn a_blurred_face_is_poor() {
    for (side, sigma) in [(100, 4.0), (150, 5.0), (260, 6.0), (260, 10.0)] {
        let blurred = sharpness(&wear::camera(&blur(&portrait(side), sigma)));
        assert!(blurred < 0.1, "side {side}: {blurred}");
    }
}

#[test]
fn more_blur_is_less_sharp() {
    let picture = portrait(160);
    let measured = [0.4, 0.8, 1.5, 3.0, 5.0].map(|sigma| sharpness(&blur(&picture, sigma)));
    assert!(measured.is_sorted_by(|a, b| a > b), "{measured:?}");
}

#[test]
fn a_blown_up_face_is_not_sharp() {
    let small = portrait(48);
    let large = resize(&small, small.width() * 6, small.height() * 6, FilterType::Triangle);
    let blown_up = sharpness(&large);
    assert!(blown_up < 0.2, "{blown_up}");
}

#[test]
fn a_small_face_is_found_and_small() {
    for side in [24, 28, 32, 36] {
        let faces = look(&open(&jpeg(&portrait(side))));
        assert_eq!(faces.len(), 1, "side {side}");
        assert!((faces[0].quality.size - side as f32).abs() < 1.0, "{side}: {}", faces[0].quality.size);
    }
}

#[test]
fn a_tiny_face_is_ignored() {
    for side in 1..12 {
        assert_eq!(look(&portrait(side)), [], "side {side}");
    }
}
