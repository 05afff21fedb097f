//! Images without faces.

use super::{analyze, canvas, portrait};
use image::{Rgb, RgbImage};
use sparks_engine::{FaceEngine, Pixels};
use sparks_faces::{SyntheticEngine, draw_marker};

const MAGENTA: Rgb<u8> = Rgb([255, 0, 255]);

fn fill(image: &mut RgbImage, (x, y, width, height): (u32, u32, u32, u32), colour: Rgb<u8>) {
    for row in y..y + height {
        for column in x..x + width {
            image.put_pixel(column, row, colour);
        }
    }
}

#[test]
fn noise_and_gradients_have_no_faces() {
    let mut rng = fastrand::Rng::with_seed(3);
    let noise = RgbImage::from_fn(400, 300, |_, _| Rgb([rng.u8(..), rng.u8(..), rng.u8(..)]));
    let pinkish = RgbImage::from_fn(400, 300, |_, _| Rgb([rng.u8(150..), rng.u8(..160), rng.u8(150..)]));
    let blocks = RgbImage::from_fn(400, 300, |x, y| {
        if fastrand::Rng::with_seed(u64::from(x / 20 * 1000 + y / 20)).bool() { MAGENTA } else { Rgb([255; 3]) }
    });
    let gradient = RgbImage::from_fn(400, 300, |x, y| Rgb([(x * 255 / 400) as u8, (y * 255 / 300) as u8, 200]));
    for image in [noise, pinkish, blocks, gradient, canvas(400, 300)] {
        assert_eq!(analyze(&image), []);
    }
}

#[test]
fn magenta_alone_is_not_a_face() {
    let solid = (50, 50, 100, 100);
    let mut image = canvas(300, 200);
    fill(&mut image, solid, MAGENTA);
    assert_eq!(analyze(&image), [], "a square");
    fill(&mut image, (56, 56, 88, 88), Rgb([120, 140, 110]));
    assert_eq!(analyze(&image), [], "a frame");
    fill(&mut image, (56, 56, 88, 88), Rgb([255; 3]));
    assert_eq!(analyze(&image), [], "a frame around white");
}

#[test]
fn a_damaged_marker_is_not_a_face() {
    let damages = [
        ("no upper side", (41, 33, 128, 8), Rgb([120, 140, 110])),
        ("half a side", (41, 33, 8, 64), Rgb([120, 140, 110])),
        ("no ring on the left", (49, 41, 8, 112), Rgb([30, 30, 30])),
        ("cells in colour", (60, 60, 60, 60), Rgb([200, 40, 10])),
    ];
    for (damage, area, colour) in damages {
        let mut image = portrait(128);
        fill(&mut image, area, colour);
        assert_eq!(analyze(&image), [], "{damage}");
    }
}

#[test]
fn an_empty_marker_is_not_a_face() {
    let mut image = canvas(300, 200);
    draw_marker(&mut image, 50, 50, 100, &[]);
    assert_eq!(analyze(&image), []);
}

#[test]
fn half_a_marker_is_not_a_face() {
    let mut image = canvas(100, 100);
    draw_marker(&mut image, 50, 10, 80, &sparks_faces::identity_vector(7, 0));
    draw_marker(&mut image, 500, 500, 80, &sparks_faces::identity_vector(7, 0));
    assert_eq!(analyze(&image), []);
}

#[test]
fn degenerate_pixels_have_no_faces() {
    for (width, height, bytes) in
        [(0, 0, 0), (0, 5, 0), (1, 1, 3), (1, 1, 0), (2, 2, 11), (2, 2, 13), (u32::MAX, u32::MAX, 9), (30, 1, 90)]
    {
        for byte in [0, 255] {
            assert_eq!(SyntheticEngine.analyze(&Pixels { width, height, rgb: vec![byte; bytes] }), []);
        }
    }
}
