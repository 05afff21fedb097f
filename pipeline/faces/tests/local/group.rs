//! Group photos: each face is found, and none twice.

use super::{PORTRAITS, analyze, centre, head};
use image::imageops::{FilterType, replace, resize};
use image::{Rgb, RgbImage};
use sparks_domain::DetectedFace;

/// Returns a background: waves with some noise.
fn background(width: u32, height: u32) -> RgbImage {
    let mut rng = fastrand::Rng::with_seed(11);
    RgbImage::from_fn(width, height, |x, y| {
        let wave = 110.0 + 40.0 * (x as f32 / 37.0).sin() * (y as f32 / 23.0).cos();
        let grey = wave as u8 + rng.u8(..20);
        Rgb([grey, grey.saturating_add(12), grey.saturating_sub(20)])
    })
}

/// Pastes heads, each half face and half surroundings, and returns their centres.
fn paste_heads(background: &mut RgbImage, heads: &[(u32, u32, u32)]) -> Vec<[f32; 2]> {
    let portraits = PORTRAITS.map(head);
    let pasted = heads.iter().enumerate().map(|(n, (x, y, width))| {
        let head = &portraits[n % portraits.len()];
        let height = width * head.height() / head.width();
        replace(background, &resize(head, *width, height, FilterType::Triangle), i64::from(*x), i64::from(*y));
        [(x + width / 2) as f32, (y + height / 2) as f32]
    });
    pasted.collect()
}

/// Checks that every head has at most one face, at least `least` have one, and that there are no others.
#[track_caller]
fn check(image: &RgbImage, heads: &[[f32; 2]], least: usize) -> Vec<DetectedFace> {
    let faces = analyze(image);
    let near = |face: &DetectedFace, head: &[f32; 2]| {
        let [x, y] = centre(image, face);
        (x - head[0]).hypot(y - head[1]) < face.bounds.width * image.width() as f32
    };
    let counts: Vec<_> = heads.iter().map(|head| faces.iter().filter(|face| near(face, head)).count()).collect();
    assert!(counts.iter().all(|count| *count <= 1), "found twice: {counts:?}");
    assert!(counts.iter().sum::<usize>() >= least, "missed: {counts:?}");
    assert_eq!(faces.len(), counts.iter().sum::<usize>(), "more faces than heads");
    faces
}

#[test]
fn small_faces_of_a_large_group_are_found() {
    let mut image = background(1920, 1280);
    // A head of 64 to 80 pixels has a face of 30 to 40.
    let heads: Vec<_> =
        (0..40).map(|n| (60 + n % 8 * 235 + n / 8 * 11, 60 + n / 8 * 240 + n % 3 * 9, 64 + n % 5 * 4)).collect();
    let heads = paste_heads(&mut image, &heads);
    let faces = check(&image, &heads, 39);
    assert!(faces.iter().all(|face| (22.0..46.0).contains(&face.quality.size)), "{faces:?}");
}

#[test]
fn faces_of_every_size_are_found_once() {
    let mut image = background(1920, 1200);
    let mut heads = vec![(40, 40, 700), (800, 30, 420), (1300, 40, 260), (1620, 60, 180)];
    heads.extend((0..12).map(|n| (780 + n * 92, 640, 60 + n % 4 * 6)));
    heads.extend((0..10).map(|n| (790 + n * 110, 900, 90)));
    let heads = paste_heads(&mut image, &heads);
    check(&image, &heads, 25);
}

#[test]
fn a_row_of_faces_wider_than_a_tile_has_each_once() {
    // Close together and shifted step by step, so that tile borders cut them at different places.
    for shift in 0..6 {
        let mut image = background(1920, 700);
        let heads: Vec<_> = (0..23).map(|n| (15 + shift * 11 + n * 79, 200 + n % 3 * 40, 76)).collect();
        let heads = paste_heads(&mut image, &heads);
        check(&image, &heads, 22);
    }
}

#[test]
fn faces_are_sorted_from_top_to_bottom() {
    let mut image = background(1000, 1000);
    let heads = paste_heads(&mut image, &[(600, 500, 200), (100, 60, 200), (500, 120, 200), (80, 620, 200)]);
    let faces = check(&image, &heads, 4);
    assert!(faces.is_sorted_by(|a, b| (a.bounds.y, a.bounds.x) <= (b.bounds.y, b.bounds.x)));
}
