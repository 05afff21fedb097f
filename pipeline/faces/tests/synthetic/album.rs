use std::collections::BTreeSet;

use super::{analyze, degradation, open, similarity};
use sparks_faces::AlbumSpec;

fn spec() -> AlbumSpec {
    AlbumSpec { photos: 24, identities: 12, faces_per_photo: 4, ..AlbumSpec::default() }
}

#[test]
fn a_photo_does_not_depend_on_the_order_of_generation() {
    let album: Vec<_> = spec().photos().take(6).collect();
    assert_eq!(spec().photo(5), album[5]);
    assert_ne!(spec().photo(4).jpeg, album[5].jpeg);
    assert_ne!(AlbumSpec { seed: 2, ..spec() }.photo(5).jpeg, album[5].jpeg);
    assert_eq!(album[5].file_name, "photo-0006.jpg");
}

#[test]
fn every_face_is_found_and_matches_its_identity() {
    let mut all = Vec::new();
    for photo in spec().photos() {
        let faces = analyze(&degradation::webp(&open(&photo.jpeg)));
        assert_eq!(faces.len(), photo.identities.len(), "{photo:?}");
        all.extend(photo.identities.into_iter().zip(faces));
    }
    for (n, (identity, face)) in all.iter().enumerate() {
        for (other, other_face) in &all[..n] {
            let similarity = similarity(face, other_face);
            let is_right = if identity == other { similarity > 0.85 } else { similarity < 0.45 };
            assert!(is_right, "{identity}, {other}: {similarity}");
        }
    }
}

#[test]
fn a_crowd_fits_into_a_photo() {
    for faces_per_photo in [20, 48, 200] {
        let crowd = AlbumSpec { photos: 2, identities: 500, faces_per_photo, ..AlbumSpec::default() };
        for photo in crowd.photos() {
            assert_eq!(analyze(&open(&photo.jpeg)).len(), photo.identities.len(), "{photo:?}");
            assert!(photo.identities.len() <= faces_per_photo.min(48));
        }
    }
}

#[test]
fn every_identity_is_in_the_album_and_at_most_once_per_photo() {
    for (photos, identities, faces_per_photo) in [(5, 5, 1), (4, 11, 3), (9, 4, 3), (3, 2, 9), (1, 6, 6)] {
        let spec = AlbumSpec { photos, identities, faces_per_photo, ..AlbumSpec::default() };
        let mut all = BTreeSet::new();
        for photo in spec.photos() {
            let here: BTreeSet<_> = photo.identities.iter().copied().collect();
            assert!((1..=faces_per_photo).contains(&here.len()) && here.len() == photo.identities.len(), "{photo:?}");
            all.extend(here);
        }
        assert_eq!(all.len(), identities);
    }
}

#[test]
fn an_album_without_identities_has_no_faces() {
    for (identities, faces_per_photo) in [(0, 3), (3, 0)] {
        let photo = AlbumSpec { identities, faces_per_photo, ..AlbumSpec::default() }.photo(0);
        assert!(photo.identities.is_empty());
        assert_eq!(analyze(&open(&photo.jpeg)), []);
    }
}

#[test]
fn photos_are_small_files() {
    let largest = spec().photos().take(8).map(|photo| photo.jpeg.len()).max().unwrap_or_default();
    println!("largest {largest} bytes");
    assert!(largest < 150_000, "{largest} bytes");
}
