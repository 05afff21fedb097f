//! An album of synthetic photos: any photo of it can be made alone, so a million can be streamed.

use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;

use super::backdrop::backdrop;
use super::identity::{identity_vector, stream, with_noise};
use super::marker::draw_marker;
use super::place::places;

/// Identities stay well apart: two looks of one have a cosine over 0.9.
pub const DEFAULT_NOISE: f32 = 0.2;

/// More faces do not fit into a photo at a size worth measuring.
const MOST_FACES: usize = 48;

/// Large enough for the faces, small enough to make a hundred a second.
const LONG_SIDE: u32 = 800;
const SHORT_SIDE: u32 = 600;

/// What an album is made from. The same values give the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct AlbumSpec {
    /// How many photos.
    pub photos: usize,
    /// How many persons are in the album. Each is in a photo where there are places enough.
    pub identities: usize,
    /// The most faces in a photo: each has between one and this many, at most 48, all of different persons.
    pub faces_per_photo: usize,
    /// How much a person's look changes from photo to photo. From 0.8 on recognition at 0.6 makes mistakes.
    pub noise: f32,
    /// Another seed is another album with other persons.
    pub seed: u64,
}

/// One photo, and who is in it.
#[derive(Clone, PartialEq, Eq)]
pub struct SyntheticPhoto {
    /// `photo-0001.jpg` is the first.
    pub file_name: String,
    /// Who is in it, from top to bottom: the order in which [`super::Synthetic`] sees them.
    pub identities: Vec<usize>,
    /// The file.
    pub jpeg: Vec<u8>,
}

impl std::fmt::Debug for SyntheticPhoto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?} ({} bytes)", self.file_name, self.identities, self.jpeg.len())
    }
}

impl Default for AlbumSpec {
    fn default() -> Self {
        Self { photos: 100, identities: 10, faces_per_photo: 3, noise: DEFAULT_NOISE, seed: 1 }
    }
}

impl AlbumSpec {
    /// Who is in the photo with this number, which is not drawn for it.
    pub fn identities(&self, n: usize) -> Vec<usize> {
        self.cast(n, &mut self.stream(n))
    }

    /// The photo with this number, from 0.
    pub fn photo(&self, n: usize) -> SyntheticPhoto {
        let mut rng = self.stream(n);
        let identities = self.cast(n, &mut rng);
        let portrait = rng.u8(0..4) == 0;
        let (width, height) = if portrait { (SHORT_SIDE, LONG_SIDE) } else { (LONG_SIDE, SHORT_SIDE) };
        let mut picture = backdrop(width, height, &mut rng);
        let places = places(width, height, identities.len() as u32, &mut rng);
        for (identity, place) in identities.iter().zip(places) {
            let look = with_noise(&identity_vector(self.seed, *identity), self.noise, rng.u64(..));
            draw_marker(&mut picture, place.x, place.y, place.side, &look);
        }
        SyntheticPhoto { file_name: format!("photo-{:04}.jpg", n + 1), identities, jpeg: jpeg(&picture) }
    }

    /// All photos, each made when it is asked for.
    pub fn photos(&self) -> impl Iterator<Item = SyntheticPhoto> {
        (0..self.photos).map(|n| self.photo(n))
    }

    fn stream(&self, n: usize) -> fastrand::Rng {
        stream(self.seed, 0x0070_686f_746f, n as u64)
    }

    /// Who is in a photo: first whoever is dealt to it in turn, so that nobody is left out, then anybody.
    fn cast(&self, n: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
        let most = self.faces_per_photo.min(self.identities).min(MOST_FACES);
        if most == 0 {
            return Vec::new();
        }
        let dealt = (n % self.identities..self.identities).step_by(self.photos.max(1));
        let mut cast: Vec<usize> = dealt.take(most).collect();
        let count = rng.usize(1..=most).max(cast.len());
        while cast.len() < count {
            let anybody = rng.usize(0..self.identities);
            if !cast.contains(&anybody) {
                cast.push(anybody);
            }
        }
        cast
    }
}

/// A picture as a JPEG of quality 85 with colour at full resolution.
///
/// # Panics
///
/// Where no JPEG can hold the picture: it has no pixels, or a side over 65535.
pub fn jpeg(picture: &RgbImage) -> Vec<u8> {
    let mut file = Vec::new();
    let (width, height) = picture.dimensions();
    JpegEncoder::new_with_quality(&mut file, 85)
        .encode(picture.as_raw(), width, height, image::ExtendedColorType::Rgb8)
        .expect("a picture that a JPEG can hold");
    file
}
