//! Photo sets that are too large for the repository.

use super::{analyze, files, open, shared};

#[test]
#[ignore = "needs the large data set and takes minutes; run it after changes of the face engine"]
fn every_photo_of_a_person_has_a_central_face() {
    let photos =
        files(&shared("faces/lfw10")).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "jpg"));
    for photo in photos {
        let faces = analyze(&open(photo.clone()));
        // The person is in the centre; others may stand behind.
        let is_central = |at: f32, size: f32| at < 0.5 && at + size > 0.5;
        let person = faces.iter().filter(|face| {
            is_central(face.bounds.x, face.bounds.width) && is_central(face.bounds.y, face.bounds.height)
        });
        assert_eq!(person.count(), 1, "{}", photo.display());
    }
}

#[test]
#[ignore = "needs the large data set and takes minutes; run it after changes of the face engine"]
fn landscapes_and_test_images_have_no_confident_face() {
    for folder in ["photos", "images"] {
        for path in files(&shared(folder)) {
            // Some files are damaged on purpose.
            let Ok(image) = image::open(&path) else { continue };
            let image = image.thumbnail(1920, 1920).into_rgb8();
            let confident = analyze(&image).iter().filter(|face| face.confidence >= 0.6).count();
            assert_eq!(confident, 0, "{}", path.display());
        }
    }
}
