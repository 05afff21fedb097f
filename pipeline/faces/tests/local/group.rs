//! Many faces in one photo: each is found, and none twice.

use super::{PORTRAITS, head, look, middle};
use image::imageops::{FilterType, replace, resize};
use image::{Rgb, RgbImage};
use sparks_domain::SeenFace;

/// Wallpaper: waves with some noise.
fn wall(width: u32, height: u32) -> RgbImage {
    let mut rng = fastrand::Rng::with_seed(11);
    RgbImage::from_fn(width, height, |x, y| {
        let wave = 110.0 + 40.0 * (x as f32 / 37.0).sin() * (y as f32 / 23.0).cos();
        let grey = wave as u8 + rng.u8(..20);
        Rgb([grey, grey.saturating_add(12), grey.saturating_sub(20)])
    })
}

/// Heads on the wall, each half face and half of what is around it; where their middles are.
fn hang(wall: &mut RgbImage, heads: &[(u32, u32, u32)]) -> Vec<[f32; 2]> {
    let portraits = PORTRAITS.map(head);
    let hung = heads.iter().enumerate().map(|(n, (x, y, width))| {
        let head = &portraits[n % portraits.len()];
        let height = width * head.height() / head.width();
        replace(wall, &resize(head, *width, height, FilterType::Triangle), i64::from(*x), i64::from(*y));
        [(x + width / 2) as f32, (y + height / 2) as f32]
    });
    hung.collect()
}

/// That every head has one face, and that there is nothing else.
#[track_caller]
fn check(picture: &RgbImage, heads: &[[f32; 2]], least: usize) -> Vec<SeenFace> {
    let faces = look(picture);
    let near = |face: &SeenFace, head: &[f32; 2]| {
        let [x, y] = middle(picture, face);
        (x - head[0]).hypot(y - head[1]) < face.bounds.width * picture.width() as f32
    };
    let counts: Vec<_> = heads.iter().map(|head| faces.iter().filter(|face| near(face, head)).count()).collect();
    assert!(counts.iter().all(|count| *count <= 1), "twice: {counts:?}");
    assert!(counts.iter().sum::<usize>() >= least, "missed: {counts:?}");
    assert_eq!(faces.len(), counts.iter().sum::<usize>(), "more faces than heads");
    faces
}

#[test]
fn small_faces_of_a_large_group_are_found() {
    let mut picture = wall(1920, 1280);
    // A head of 64 to 80 pixels has a face of 30 to 40.
    let heads: Vec<_> =
        (0..40).map(|n| (60 + n % 8 * 235 + n / 8 * 11, 60 + n / 8 * 240 + n % 3 * 9, 64 + n % 5 * 4)).collect();
    let heads = hang(&mut picture, &heads);
    let faces = check(&picture, &heads, 39);
    assert!(faces.iter().all(|face| (22.0..46.0).contains(&face.quality.size)), "{faces:?}");
}

#[test]
fn faces_of_every_size_are_found_once() {
    let mut picture = wall(1920, 1200);
    let mut heads = vec![(40, 40, 700), (800, 30, 420), (1300, 40, 260), (1620, 60, 180)];
    heads.extend((0..12).map(|n| (780 + n * 92, 640, 60 + n % 4 * 6)));
    heads.extend((0..10).map(|n| (790 + n * 110, 900, 90)));
    let heads = hang(&mut picture, &heads);
    check(&picture, &heads, 25);
}

#[test]
fn a_row_of_faces_wider_than_a_closer_look_has_each_once() {
    // Shoulder to shoulder and moved bit by bit, so that whatever the borders between closer looks cut is tried.
    for shift in 0..6 {
        let mut picture = wall(1920, 700);
        let heads: Vec<_> = (0..23).map(|n| (15 + shift * 11 + n * 79, 200 + n % 3 * 40, 76)).collect();
        let heads = hang(&mut picture, &heads);
        check(&picture, &heads, 22);
    }
}

#[test]
fn faces_come_from_top_to_bottom() {
    let mut picture = wall(1000, 1000);
    let heads = hang(&mut picture, &[(600, 500, 200), (100, 60, 200), (500, 120, 200), (80, 620, 200)]);
    let faces = check(&picture, &heads, 4);
    assert!(faces.is_sorted_by(|a, b| (a.bounds.y, a.bounds.x) <= (b.bounds.y, b.bounds.x)));
}
