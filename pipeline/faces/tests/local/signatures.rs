use super::{ENGINE, PORTRAITS, load, look, pixels, portrait, similarity};
use image::{RgbImage, imageops::flip_horizontal};
use sparks_engine::FaceEngine;
use sparks_faces::{Embedders, LocalOptions};

const PLAIN: LocalOptions = LocalOptions { models: Embedders::Both, mirror: false, attributes: false };

#[test]
fn one_person_is_nearer_than_another() {
    let [obama, again, third, biden, collins] = PORTRAITS.map(|name| look(&portrait(name)).remove(0));
    let same = [similarity(&obama, &again), similarity(&obama, &third), similarity(&again, &third)];
    let strangers = [&obama, &again, &third].map(|face| similarity(face, &biden).max(similarity(face, &collins)));
    let (least, most) = (same.into_iter().fold(1.0, f32::min), strangers.into_iter().fold(-1.0, f32::max));
    assert!(least > most + 0.03, "{same:?} {strangers:?}");
}

#[test]
fn the_models_give_the_dimensions_and_the_name() {
    for (models, dimensions, name) in [(Embedders::Both, 640, "dlib+mobilefacenet-1"), (Embedders::Dlib, 128, "dlib-1")]
    {
        let face = load(LocalOptions { models, ..PLAIN }).look(&pixels(&portrait("collins.png"))).remove(0);
        assert_eq!(face.signature.map(|signature| signature.as_slice().len()), Some(dimensions));
        assert_eq!(face.model, name);
    }
}

#[test]
fn the_mirror_changes_little() {
    let mirror = load(LocalOptions { mirror: true, ..PLAIN });
    let in_mirror = |picture: &RgbImage| mirror.look(&pixels(picture)).remove(0);
    for name in PORTRAITS {
        let picture = portrait(name);
        let (mirrored, seen) = (in_mirror(&picture), look(&picture).remove(0));
        let alike = similarity(&mirrored, &seen);
        assert!(alike > 0.97 && mirrored.signature != seen.signature, "{name}: {alike}");
        // With the mirror it hardly matters which way the photo is.
        let turned = similarity(&mirrored, &in_mirror(&flip_horizontal(&picture)));
        assert!(turned > 0.98, "{name}: {turned}");
    }
}

#[test]
fn the_same_pixels_give_the_same_bytes_on_every_thread() {
    let pictures = PORTRAITS.map(|name| pixels(&portrait(name)));
    let alone: Vec<_> = pictures.iter().map(|picture| ENGINE.look(picture)).collect();
    std::thread::scope(|scope| {
        let looks: Vec<_> = (0..3)
            .map(|n: usize| {
                let pictures = &pictures;
                scope.spawn(move || (0..5).map(|k| ENGINE.look(&pictures[(n + k) % 5])).collect::<Vec<_>>())
            })
            .collect();
        for (n, look) in looks.into_iter().enumerate() {
            for (k, faces) in look.join().expect("a look").into_iter().enumerate() {
                assert_eq!(faces, alone[(n + k) % 5]);
            }
        }
    });
}
