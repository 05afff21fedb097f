//! Whether signatures separate identities.

use super::{analyze, canvas, degradation, similarity};
use image::RgbImage;
use sparks_domain::DetectedFace;
use sparks_faces::{DEFAULT_NOISE, draw_marker, identity_vector, with_noise};

/// Returns the lowest, the mean and the highest value.
fn spread(values: &[f32]) -> (f32, f32, f32) {
    let lowest = values.iter().copied().fold(f32::INFINITY, f32::min);
    let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (lowest, values.iter().sum::<f32>() / values.len() as f32, highest)
}

/// Returns two photos of these identities, at several sizes, after a degradation.
fn two_photos(identities: usize, noise: f32, degrade: fn(&RgbImage) -> RgbImage) -> [Vec<DetectedFace>; 2] {
    [0, 1].map(|photo| {
        let mut image = canvas(2700, (identities as u32).div_ceil(10) * 310);
        for identity in 0..identities {
            let side = 90 + (identity * 37 + photo * 71) as u32 % 171;
            let (column, row) = (identity as u32 % 10, identity as u32 / 10);
            let vector = with_noise(&identity_vector(5, identity), noise, (identity * 2 + photo) as u64);
            // Each a little lower than the one before, so that they are returned in this order.
            draw_marker(&mut image, column * 269 + 5, row * 309 + column * 4 + 3, side, &vector);
        }
        let faces = analyze(&degrade(&image));
        assert_eq!(faces.len(), identities);
        faces
    })
}

/// Returns cosine similarities of the same identity, and of different ones.
fn cosines([a, b]: &[Vec<DetectedFace>; 2]) -> (Vec<f32>, Vec<f32>) {
    let same = a.iter().zip(b).map(|(a, b)| similarity(a, b)).collect();
    let pairs = (0..a.len()).flat_map(|n| (0..n).map(move |m| (n, m)));
    let different = pairs.flat_map(|(n, m)| [similarity(&a[n], &a[m]), similarity(&a[n], &b[m])]).collect();
    (same, different)
}

#[track_caller]
fn check_separated(photos: &[Vec<DetectedFace>; 2], at_least: f32) {
    let (same, different) = cosines(photos);
    let (same, different) = (spread(&same), spread(&different));
    println!("same {same:?}, different {different:?}");
    assert!(same.0 > at_least, "same {same:?}");
    assert!(different.2 < 0.45 && different.1.abs() < 0.02, "different {different:?}");
}

#[test]
fn identities_are_separated_after_jpeg_and_webp() {
    check_separated(&two_photos(60, DEFAULT_NOISE, |image| degradation::webp(&degradation::camera_jpeg(image))), 0.9);
}

#[test]
fn identities_are_separated_in_a_downscaled_photo() {
    // The smallest, of 90 pixels, is reduced to 64.
    check_separated(
        &two_photos(60, DEFAULT_NOISE, |image| {
            degradation::webp(&degradation::downscaled(&degradation::camera_jpeg(image)))
        }),
        0.9,
    );
}

#[test]
fn the_same_vector_in_two_sizes_is_the_same() {
    let mut image = canvas(500, 300);
    let vector = identity_vector(5, 1);
    draw_marker(&mut image, 10, 10, 90, &vector);
    draw_marker(&mut image, 200, 20, 260, &vector);
    let faces = analyze(&degradation::camera_jpeg(&image));
    assert!(similarity(&faces[0], &faces[1]) > 0.98);
}

#[test]
fn much_noise_makes_mistakes() {
    let below = |noise: f32| {
        let (same, _) = cosines(&two_photos(60, noise, RgbImage::clone));
        println!("noise {noise}: same {:?}", spread(&same));
        same.iter().filter(|cosine| **cosine < 0.6).count()
    };
    assert_eq!(below(0.4), 0);
    assert!((10..50).contains(&below(0.8)));
    assert!(below(2.0) > 55);
}

#[test]
fn other_seeds_give_other_identities() {
    assert_eq!(identity_vector(1, 2), identity_vector(1, 2));
    assert_ne!(identity_vector(1, 2), identity_vector(1, 3));
    assert_ne!(identity_vector(1, 2), identity_vector(2, 2));
    assert_ne!(identity_vector(1, 2), identity_vector(2, 1));
}
