use super::{PORTRAITS, analyze, portrait};
use image::imageops::{FilterType, blur, resize};

#[test]
fn a_portrait_is_sharp_and_frontal() {
    for name in PORTRAITS {
        let quality = analyze(&portrait(name)).remove(0).quality;
        assert!(quality.sharpness > 0.6 && quality.size > 90.0, "{name}: {quality:?}");
        assert!(quality.turn.is_some_and(|turn| turn < 0.5), "{name}: {quality:?}");
    }
}

#[test]
fn more_blur_is_less_sharp() {
    let image = portrait("obama-1.jpg");
    let measured = [0.5, 1.0, 2.0, 4.0, 8.0].map(|sigma| analyze(&blur(&image, sigma)).remove(0).quality.sharpness);
    assert!(measured.is_sorted_by(|a, b| a > b), "{measured:?}");
    assert!(measured[0] > 0.8 && measured[4] < 0.1, "{measured:?}");
}

#[test]
fn an_enlarged_face_is_not_sharp() {
    let image = portrait("obama-1.jpg");
    let (width, height) = image.dimensions();
    // From 25 pixels across the face to 221.
    let small = resize(&image, width / 9, height / 9, FilterType::Triangle);
    let large = resize(&small, width, height, FilterType::CatmullRom);
    for enlarged in [&small, &large] {
        let quality = analyze(enlarged).remove(0).quality;
        assert!(quality.sharpness < 0.25, "{quality:?}");
    }
}

#[test]
fn the_size_is_in_pixels_of_the_photo() {
    let image = portrait("collins.png");
    let size = analyze(&image).remove(0).quality.size;
    let twice = analyze(&resize(&image, 580, 580, FilterType::Triangle)).remove(0).quality.size;
    assert!((90.0..110.0).contains(&size) && (twice / size - 2.0).abs() < 0.1, "{size} {twice}");
}
