//! Whether signatures tell identities apart.

use super::{canvas, look, similarity, wear};
use image::RgbImage;
use sparks_domain::SeenFace;
use sparks_faces::{DEFAULT_NOISE, draw_marker, identity_vector, with_noise};

/// The lowest, the mean and the highest.
fn spread(values: &[f32]) -> (f32, f32, f32) {
    let lowest = values.iter().copied().fold(f32::INFINITY, f32::min);
    let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (lowest, values.iter().sum::<f32>() / values.len() as f32, highest)
}

/// Two looks of each of these identities, at several sizes, in two photos that went through this.
fn two_looks(identities: usize, noise: f32, wear: fn(&RgbImage) -> RgbImage) -> [Vec<SeenFace>; 2] {
    [0, 1].map(|photo| {
        let mut picture = canvas(2700, (identities as u32).div_ceil(10) * 310);
        for identity in 0..identities {
            let side = 90 + (identity * 37 + photo * 71) as u32 % 171;
            let (column, row) = (identity as u32 % 10, identity as u32 / 10);
            let look = with_noise(&identity_vector(5, identity), noise, (identity * 2 + photo) as u64);
            // Each a little lower than the one before, so that they are seen in this order.
            draw_marker(&mut picture, column * 269 + 5, row * 309 + column * 4 + 3, side, &look);
        }
        let faces = look(&wear(&picture));
        assert_eq!(faces.len(), identities);
        faces
    })
}

/// Cosines between the looks of one identity, and between strangers.
fn cosines([a, b]: &[Vec<SeenFace>; 2]) -> (Vec<f32>, Vec<f32>) {
    let same = a.iter().zip(b).map(|(a, b)| similarity(a, b)).collect();
    let pairs = (0..a.len()).flat_map(|n| (0..n).map(move |m| (n, m)));
    let strangers = pairs.flat_map(|(n, m)| [similarity(&a[n], &a[m]), similarity(&a[n], &b[m])]).collect();
    (same, strangers)
}

#[track_caller]
fn check_apart(looks: &[Vec<SeenFace>; 2], at_least: f32) {
    let (same, strangers) = cosines(looks);
    let (same, strangers) = (spread(&same), spread(&strangers));
    println!("same {same:?}, strangers {strangers:?}");
    assert!(same.0 > at_least, "same {same:?}");
    assert!(strangers.2 < 0.45 && strangers.1.abs() < 0.02, "strangers {strangers:?}");
}

#[test]
fn identities_stay_apart_through_jpeg_and_webp() {
    check_apart(&two_looks(60, DEFAULT_NOISE, |picture| wear::webp(&wear::camera(picture))), 0.9);
}

#[test]
fn identities_stay_apart_in_a_downscaled_photo() {
    // The smallest, of 90 pixels, comes out at 64.
    check_apart(&two_looks(60, DEFAULT_NOISE, |picture| wear::webp(&wear::downscaled(&wear::camera(picture)))), 0.9);
}

#[test]
fn the_same_look_in_two_sizes_is_the_same() {
    let mut picture = canvas(500, 300);
    let vector = identity_vector(5, 1);
    draw_marker(&mut picture, 10, 10, 90, &vector);
    draw_marker(&mut picture, 200, 20, 260, &vector);
    let faces = look(&wear::camera(&picture));
    assert!(similarity(&faces[0], &faces[1]) > 0.98);
}

#[test]
fn much_noise_makes_mistakes() {
    let below = |noise: f32| {
        let (same, _) = cosines(&two_looks(60, noise, RgbImage::clone));
        println!("noise {noise}: same {:?}", spread(&same));
        same.iter().filter(|cosine| **cosine < 0.6).count()
    };
    assert_eq!(below(0.4), 0);
    assert!((10..50).contains(&below(0.8)));
    assert!(below(2.0) > 55);
}

#[test]
fn other_seeds_are_other_people() {
    assert_eq!(identity_vector(1, 2), identity_vector(1, 2));
    assert_ne!(identity_vector(1, 2), identity_vector(1, 3));
    assert_ne!(identity_vector(1, 2), identity_vector(2, 2));
    assert_ne!(identity_vector(1, 2), identity_vector(2, 1));
}
