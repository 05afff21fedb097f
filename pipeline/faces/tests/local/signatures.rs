use super::{ENGINE, PORTRAITS, analyze, load, pixels, portrait, similarity};
use image::{RgbImage, imageops::flip_horizontal};
use sparks_engine::FaceEngine;
use sparks_faces::{Embedders, LocalOptions};

const PLAIN: LocalOptions = LocalOptions { models: Embedders::SfaceMobilefacenet, mirror: false, attributes: false };

#[test]
fn one_person_is_more_similar_than_another() {
    let [obama, again, third, biden, collins] = PORTRAITS.map(|name| analyze(&portrait(name)).remove(0));
    let same = [similarity(&obama, &again), similarity(&obama, &third), similarity(&again, &third)];
    let others = [&obama, &again, &third].map(|face| similarity(face, &biden).max(similarity(face, &collins)));
    let (lowest, highest) = (same.into_iter().fold(1.0, f32::min), others.into_iter().fold(-1.0, f32::max));
    assert!(lowest > highest + 0.03, "{same:?} {others:?}");
}

#[test]
fn the_models_determine_dimensions_and_name() {
    for (models, dimensions, name) in [
        (Embedders::SfaceMobilefacenet, 640, "sface+mobilefacenet-mean136-1"),
        (Embedders::DlibMobilefacenet, 640, "dlib+mobilefacenet-1"),
        (Embedders::Dlib, 128, "dlib-1"),
    ] {
        let face = load(LocalOptions { models, ..PLAIN }).analyze(&pixels(&portrait("collins.png"))).remove(0);
        assert_eq!(face.signature.map(|signature| signature.as_slice().len()), Some(dimensions));
        assert_eq!(face.model, name);
    }
}

#[test]
fn mirroring_changes_the_signature_slightly() {
    let mirror = load(LocalOptions { mirror: true, ..PLAIN });
    let with_mirror = |image: &RgbImage| mirror.analyze(&pixels(image)).remove(0);
    for name in PORTRAITS {
        let image = portrait(name);
        let (mirrored, plain) = (with_mirror(&image), analyze(&image).remove(0));
        let cosine = similarity(&mirrored, &plain);
        assert!(cosine > 0.93 && mirrored.signature != plain.signature, "{name}: {cosine}");
        // With the option it hardly matters whether the photo itself is mirrored.
        let flipped = similarity(&mirrored, &with_mirror(&flip_horizontal(&image)));
        assert!(flipped > 0.96, "{name}: {flipped}");
    }
}

#[test]
fn the_same_pixels_give_the_same_bytes_on_every_thread() {
    let images = PORTRAITS.map(|name| pixels(&portrait(name)));
    let alone: Vec<_> = images.iter().map(|image| ENGINE.analyze(image)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|n: usize| {
                let images = &images;
                scope.spawn(move || (0..5).map(|k| ENGINE.analyze(&images[(n + k) % 5])).collect::<Vec<_>>())
            })
            .collect();
        for (n, thread) in threads.into_iter().enumerate() {
            for (k, faces) in thread.join().expect("a thread").into_iter().enumerate() {
                assert_eq!(faces, alone[(n + k) % 5]);
            }
        }
    });
}
