//! Files of all EXIF orientations come out the same way up.

use image::{
    DynamicImage, ImageFormat,
    metadata::Orientation::{self, Rotate90, Rotate270},
};
use sparks_engine::{Darkroom, Pixels};
use sparks_media::Lab;

use super::{data, files, own};

/// A JPEG that is stored another way has its blocks elsewhere, and loses other details.
const ALIKE: f64 = 6.0;

/// How far colours are apart on average, of 255.
fn difference(a: &Pixels, b: &Pixels) -> f64 {
    let sum: u64 = a.rgb.iter().zip(&b.rgb).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / a.rgb.len() as f64
}

/// The photo as a camera held this way stores it, and says so.
fn held(photo: &DynamicImage, orientation: u8) -> Vec<u8> {
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
fn a_photo_held_any_way_looks_the_same_way_up() {
    for name in ["obama-1.jpg", "collins.png"] {
        let photo = image::open(own("photos").join(name)).unwrap();
        let upright = Lab::default().develop(&held(&photo, 1)).unwrap();
        for orientation in 2..=8 {
            let turned = Lab::default().develop(&held(&photo, orientation)).unwrap();
            assert_eq!((turned.width, turned.height), (upright.width, upright.height), "{name}, {orientation}");
            let difference = difference(&turned.pixels, &upright.pixels);
            println!("{name}, {orientation}: {difference:.2}");
            assert!(difference < ALIKE, "{name}, {orientation} differs by {difference}");
        }
        let mirrored = Lab::default().develop(&held(&photo.fliph(), 1)).unwrap();
        assert!(difference(&mirrored.pixels, &upright.pixels) > 3.0 * ALIKE, "{name}: a difference would be seen");
    }
}

#[test]
fn every_orientation_looks_the_same_way_up() {
    let Some(folder) = data("images/orientation") else { return };
    for shape in ["Landscape", "Portrait"] {
        let of_shape: Vec<_> = files(folder.clone()).into_iter().filter(|(name, _)| name.starts_with(shape)).collect();
        let developed = |file: &[u8]| Lab::default().develop(file).unwrap();
        let (_, upright) = of_shape.iter().find(|(name, _)| name.ends_with("_1.jpg")).unwrap();
        let upright = developed(upright);
        assert!(of_shape.len() >= 8);
        for (name, file) in &of_shape {
            let turned = developed(file);
            assert_eq!((turned.width, turned.height), (upright.width, upright.height), "{name}");
            assert_eq!((turned.medium.width, turned.medium.height), (400, 400), "{name}");
            let difference = difference(&turned.pixels, &upright.pixels);
            println!("{name}: {difference:.2}");
            assert!(difference < ALIKE, "{name} differs by {difference}");
        }
    }
}
