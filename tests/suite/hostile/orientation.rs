//! Photos of all EXIF orientations are rendered upright.

use image::{
    DynamicImage, ImageFormat,
    metadata::Orientation::{self, Rotate90, Rotate270},
};
use sparks_engine::{ImageProcessor, Pixels};
use sparks_tests::worker::image_processor;

use super::{crate_path, data, files};

/// The largest difference of equal photos: a rotated JPEG has other block boundaries and loses other details.
const MAX_DIFFERENCE: f64 = 6.0;

/// Returns the mean absolute difference of colour values, of 255.
fn difference(a: &Pixels, b: &Pixels) -> f64 {
    let sum: u64 = a.rgb.iter().zip(&b.rgb).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / a.rgb.len() as f64
}

/// Returns the photo as a camera in this EXIF orientation stores it.
fn with_orientation(photo: &DynamicImage, orientation: u8) -> Vec<u8> {
    let mut stored = photo.clone();
    stored.apply_orientation(match Orientation::from_exif(orientation).unwrap() {
        Rotate90 => Rotate270,
        Rotate270 => Rotate90,
        own_inverse => own_inverse,
    });
    let mut jpeg = std::io::Cursor::new(Vec::new());
    stored.write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let exif =
        [&b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[orientation, 0, 0, 0, 0, 0, 0]].concat();
    let (start, rest) = jpeg.get_ref().split_at(2);
    let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
    [start, b"\xff\xe1", &length, &exif, rest].concat()
}

#[test]
fn a_rotated_photo_is_rendered_upright() {
    for name in ["obama-1.jpg", "collins.png"] {
        let photo = image::open(crate_path("photos").join(name)).unwrap();
        let upright = image_processor().render(&with_orientation(&photo, 1)).unwrap();
        for orientation in 2..=8 {
            let rotated = image_processor().render(&with_orientation(&photo, orientation)).unwrap();
            assert_eq!((rotated.width, rotated.height), (upright.width, upright.height), "{name}, {orientation}");
            let difference = difference(&rotated.pixels, &upright.pixels);
            println!("{name}, {orientation}: {difference:.2}");
            assert!(difference < MAX_DIFFERENCE, "{name}, {orientation} differs by {difference}");
        }
        let mirrored = image_processor().render(&with_orientation(&photo.fliph(), 1)).unwrap();
        assert!(
            difference(&mirrored.pixels, &upright.pixels) > 3.0 * MAX_DIFFERENCE,
            "{name}: a mirrored photo must differ"
        );
    }
}

#[test]
fn sample_photos_of_every_orientation_are_rendered_upright() {
    let Some(folder) = data("images/orientation") else { return };
    for shape in ["Landscape", "Portrait"] {
        let of_shape: Vec<_> = files(folder.clone()).into_iter().filter(|(name, _)| name.starts_with(shape)).collect();
        let render = |file: &[u8]| image_processor().render(file).unwrap();
        let (_, upright) = of_shape.iter().find(|(name, _)| name.ends_with("_1.jpg")).unwrap();
        let upright = render(upright);
        assert!(of_shape.len() >= 8);
        for (name, file) in &of_shape {
            let rotated = render(file);
            assert_eq!((rotated.width, rotated.height), (upright.width, upright.height), "{name}");
            assert_eq!((rotated.medium.width, rotated.medium.height), (64, 64), "{name}");
            let difference = difference(&rotated.pixels, &upright.pixels);
            println!("{name}: {difference:.2}");
            assert!(difference < MAX_DIFFERENCE, "{name} differs by {difference}");
        }
    }
}
