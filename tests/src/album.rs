//! Small photos of marker faces, and who is in them.

use image::{Rgb, RgbImage};
use sparks_faces::{DEFAULT_NOISE, draw_marker, identity_vector, jpeg, with_noise};

/// A photo and who is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Photo {
    /// Its number in the album, from 0.
    pub number: u64,
    /// Who is in it, from left to right, and in a crowd from top to bottom.
    pub identities: Vec<usize>,
    /// The file.
    pub jpeg: Vec<u8>,
}

const SIDE: u32 = 96;
const GAP: u32 = 12;
/// As many stand beside each other in a crowd as are not made smaller.
const ROW: u32 = 15;

/// An album of photos with these identities in them. Nobody looks the same twice.
pub fn album(casts: &[&[usize]]) -> Vec<Photo> {
    (0..).zip(casts).map(|(number, identities)| photo(number, identities)).collect()
}

/// The photo with this number, of these identities.
pub fn photo(number: u64, identities: &[usize]) -> Photo {
    let look = |(place, identity): (u64, &usize)| {
        with_noise(&identity_vector(1, *identity), DEFAULT_NOISE, number * 100 + place)
    };
    let looks: Vec<Vec<f32>> = (0..).zip(identities).map(look).collect();
    Photo { identities: identities.to_vec(), ..photo_of_looks(number, &looks) }
}

/// The photo with this number, of somebody between two identities.
pub fn photo_between(number: u64, one: usize, other: usize) -> Photo {
    let look = identity_vector(1, one).iter().zip(identity_vector(1, other)).map(|(a, b)| a + b).collect();
    photo_of_looks(number, &[look])
}

/// The photo with this number, of an identity that looks otherwise in every photo, the more the more noise.
pub fn photo_with_noise(number: u64, identity: usize, noise: f32) -> Photo {
    photo_of_looks(number, &[with_noise(&identity_vector(1, identity), noise, number)])
}

fn photo_of_looks(number: u64, looks: &[Vec<f32>]) -> Photo {
    let faces = u32::try_from(looks.len()).unwrap_or_default().max(1);
    let [width, height] = [faces.min(ROW), faces.div_ceil(ROW)].map(|n| GAP + (SIDE + GAP) * n);
    // The sky differs, so that photos without anybody differ, too.
    let sky = Rgb([90, 120 + (number % 64) as u8, 150]);
    let mut canvas = RgbImage::from_pixel(width, height, sky);
    for (place, look) in (0..).zip(looks) {
        let [x, y] = [place % ROW, place / ROW].map(|n| GAP + (SIDE + GAP) * n);
        draw_marker(&mut canvas, x, y, SIDE, look);
    }
    Photo { number, identities: Vec::new(), jpeg: jpeg(&canvas) }
}
