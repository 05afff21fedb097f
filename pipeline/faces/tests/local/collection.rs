//! Photos that are too many for the project.

use super::{files, look, open, shared};

#[test]
fn every_photo_of_a_person_has_a_face() {
    let Some(folder) = shared("faces/lfw10") else { return };
    let photos = files(&folder).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "jpg"));
    for photo in photos {
        let faces = look(&open(photo.clone()));
        // The person is in the middle; others may stand behind.
        let in_the_middle = |at: f32, size: f32| at < 0.5 && at + size > 0.5;
        let person = faces.iter().filter(|face| {
            in_the_middle(face.bounds.x, face.bounds.width) && in_the_middle(face.bounds.y, face.bounds.height)
        });
        assert_eq!(person.count(), 1, "{}", photo.display());
    }
}

#[test]
fn landscapes_and_test_pictures_have_no_sure_face() {
    for folder in ["photos", "images"] {
        let Some(folder) = shared(folder) else { return };
        for path in files(&folder) {
            // Some are damaged on purpose.
            let Ok(picture) = image::open(&path) else { continue };
            let picture = picture.thumbnail(1920, 1920).into_rgb8();
            let sure = look(&picture).iter().filter(|face| face.confidence >= 0.6).count();
            assert_eq!(sure, 0, "{}", path.display());
        }
    }
}
