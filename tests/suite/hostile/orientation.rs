//! Real files of all EXIF orientations come out the same way up.

use sparks_engine::{Darkroom, Pixels};
use sparks_media::Lab;

use super::{data, files};

/// How far colours are apart on average, of 255.
fn difference(a: &Pixels, b: &Pixels) -> f64 {
    let sum: u64 = a.rgb.iter().zip(&b.rgb).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / a.rgb.len() as f64
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
            assert!(difference < 6.0, "{name} differs by {difference}");
        }
    }
}
