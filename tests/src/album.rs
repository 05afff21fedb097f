//! Small synthetic photos of marker faces, with the identities in them.

use image::{Rgb, RgbImage};
use sparks_faces::{DEFAULT_NOISE, draw_marker, identity_vector, jpeg, with_noise};

/// A synthetic photo and its ground truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Photo {
    /// The photo's number in the album, from 0.
    pub number: u64,
    /// The identities in the photo, row by row from the left.
    pub identities: Vec<usize>,
    /// The encoded file.
    pub jpeg: Vec<u8>,
}

const SIDE: u32 = 96;
const GAP: u32 = 12;
/// The largest number of faces in a row for which the image processor does not shrink the photo.
const FACES_PER_ROW: u32 = 15;

/// Creates an album with one photo for each list of identities. No two faces of an identity are equal.
pub fn album(identity_lists: &[&[usize]]) -> Vec<Photo> {
    (0..).zip(identity_lists).map(|(number, identities)| photo(number, identities)).collect()
}

/// Creates the photo with this number, showing these identities.
pub fn photo(number: u64, identities: &[usize]) -> Photo {
    let marker = |(place, identity): (u64, &usize)| {
        with_noise(&identity_vector(1, *identity), DEFAULT_NOISE, number * 100 + place)
    };
    let markers: Vec<Vec<f32>> = (0..).zip(identities).map(marker).collect();
    Photo { identities: identities.to_vec(), ..draw_photo(number, &markers) }
}

/// Creates a photo of a face that is equally similar to two identities.
pub fn photo_between(number: u64, one: usize, other: usize) -> Photo {
    let marker = identity_vector(1, one).iter().zip(identity_vector(1, other)).map(|(a, b)| a + b).collect();
    draw_photo(number, &[marker])
}

/// Creates a photo of an identity whose face differs from the identity's other faces by `noise`.
pub fn photo_with_noise(number: u64, identity: usize, noise: f32) -> Photo {
    draw_photo(number, &[with_noise(&identity_vector(1, identity), noise, number)])
}

fn draw_photo(number: u64, markers: &[Vec<f32>]) -> Photo {
    let faces = u32::try_from(markers.len()).unwrap_or_default().max(1);
    let [width, height] = [faces.min(FACES_PER_ROW), faces.div_ceil(FACES_PER_ROW)].map(|n| GAP + (SIDE + GAP) * n);
    // The background depends on the number, so that photos without faces differ.
    let background = Rgb([90, 120 + (number % 64) as u8, 150]);
    let mut canvas = RgbImage::from_pixel(width, height, background);
    for (place, marker) in (0..).zip(markers) {
        let [x, y] = [place % FACES_PER_ROW, place / FACES_PER_ROW].map(|n| GAP + (SIDE + GAP) * n);
        draw_marker(&mut canvas, x, y, SIDE, marker);
    }
    Photo { number, identities: Vec::new(), jpeg: jpeg(&canvas) }
}
