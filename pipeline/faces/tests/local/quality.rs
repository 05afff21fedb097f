use super::{PORTRAITS, look, portrait};
use image::imageops::{FilterType, blur, resize};

#[test]
fn a_portrait_is_crisp_and_looks_at_us() {
    for name in PORTRAITS {
        let quality = look(&portrait(name)).remove(0).quality;
        assert!(quality.sharpness > 0.6 && quality.size > 90.0, "{name}: {quality:?}");
        assert!(quality.turn.is_some_and(|turn| turn < 0.5), "{name}: {quality:?}");
    }
}

#[test]
fn more_blur_is_less_sharp() {
    let picture = portrait("obama-1.jpg");
    let measured = [0.5, 1.0, 2.0, 4.0, 8.0].map(|sigma| look(&blur(&picture, sigma)).remove(0).quality.sharpness);
    assert!(measured.is_sorted_by(|a, b| a > b), "{measured:?}");
    assert!(measured[0] > 0.8 && measured[4] < 0.1, "{measured:?}");
}

#[test]
fn a_blown_up_face_is_not_sharp() {
    let picture = portrait("obama-1.jpg");
    let (width, height) = picture.dimensions();
    // From 25 pixels across the face to 221.
    let small = resize(&picture, width / 9, height / 9, FilterType::Triangle);
    let large = resize(&small, width, height, FilterType::CatmullRom);
    for blown_up in [&small, &large] {
        let quality = look(blown_up).remove(0).quality;
        assert!(quality.sharpness < 0.25, "{quality:?}");
    }
}

#[test]
fn the_size_is_in_pixels_of_the_photo() {
    let picture = portrait("collins.png");
    let size = look(&picture).remove(0).quality.size;
    let twice = look(&resize(&picture, 580, 580, FilterType::Triangle)).remove(0).quality.size;
    assert!((90.0..110.0).contains(&size) && (twice / size - 2.0).abs() < 0.1, "{size} {twice}");
}
