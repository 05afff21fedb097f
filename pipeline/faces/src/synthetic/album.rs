//! Synthetic albums: any photo can be generated alone, so that a million can be streamed.

use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;

use super::backdrop::backdrop;
use super::identity::{identity_vector, stream, with_noise};
use super::marker::draw_marker;
use super::placement::place_faces;

/// Keeps identities well apart: two photos of one have a cosine similarity over 0.9.
pub const DEFAULT_NOISE: f32 = 0.2;

/// More faces do not fit into a photo at a measurable size.
const MAX_FACES: usize = 48;

/// Large enough for the faces, small enough to generate a hundred photos per second.
const LONG_SIDE: u32 = 800;
const SHORT_SIDE: u32 = 600;

/// The parameters of an album. The same parameters give the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct AlbumSpec {
    /// Number of photos.
    pub photos: usize,
    /// Number of persons. Each is in at least one photo if there is space for all.
    pub identities: usize,
    /// Largest number of faces in a photo, at most 48. Each photo has between one and this many, all of different persons.
    pub faces_per_photo: usize,
    /// How much a person's vector varies between photos. From 0.8 on, recognition at a threshold of 0.6 makes mistakes.
    pub noise: f32,
    /// Another seed gives another album with other persons.
    pub seed: u64,
}

/// A generated photo and the persons in it.
#[derive(Clone, PartialEq, Eq)]
pub struct SyntheticPhoto {
    /// The file name; the first is `photo-0001.jpg`.
    pub file_name: String,
    /// The persons in it, from top to bottom: the order in which [`super::SyntheticEngine`] returns them.
    pub identities: Vec<usize>,
    /// The JPEG file.
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
    /// Returns the persons in the photo with this number without drawing it.
    pub fn identities(&self, n: usize) -> Vec<usize> {
        self.choose_identities(n, &mut self.stream(n))
    }

    /// Generates the photo with this number, from 0.
    pub fn photo(&self, n: usize) -> SyntheticPhoto {
        let mut rng = self.stream(n);
        let identities = self.choose_identities(n, &mut rng);
        let is_portrait = rng.u8(0..4) == 0;
        let (width, height) = if is_portrait { (SHORT_SIDE, LONG_SIDE) } else { (LONG_SIDE, SHORT_SIDE) };
        let mut image = backdrop(width, height, &mut rng);
        let placements = place_faces(width, height, identities.len() as u32, &mut rng);
        for (identity, placement) in identities.iter().zip(placements) {
            let vector = with_noise(&identity_vector(self.seed, *identity), self.noise, rng.u64(..));
            draw_marker(&mut image, placement.x, placement.y, placement.side, &vector);
        }
        SyntheticPhoto { file_name: format!("photo-{:04}.jpg", n + 1), identities, jpeg: jpeg(&image) }
    }

    /// Returns all photos, each generated on demand.
    pub fn photos(&self) -> impl Iterator<Item = SyntheticPhoto> {
        (0..self.photos).map(|n| self.photo(n))
    }

    fn stream(&self, n: usize) -> fastrand::Rng {
        stream(self.seed, 0x0070_686f_746f, n as u64)
    }

    /// Chooses the persons of a photo: first those assigned to it in turn, so that each occurs, then random ones.
    fn choose_identities(&self, n: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
        let max = self.faces_per_photo.min(self.identities).min(MAX_FACES);
        if max == 0 {
            return Vec::new();
        }
        let assigned = (n % self.identities..self.identities).step_by(self.photos.max(1));
        let mut chosen: Vec<usize> = assigned.take(max).collect();
        let count = rng.usize(1..=max).max(chosen.len());
        while chosen.len() < count {
            let identity = rng.usize(0..self.identities);
            if !chosen.contains(&identity) {
                chosen.push(identity);
            }
        }
        chosen
    }
}

/// Encodes an image as a JPEG of quality 85 without chroma subsampling.
///
/// # Panics
///
/// If a JPEG cannot hold the image: it has no pixels, or a side over 65535.
pub fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut file = Vec::new();
    let (width, height) = image.dimensions();
    JpegEncoder::new_with_quality(&mut file, 85)
        .encode(image.as_raw(), width, height, image::ExtendedColorType::Rgb8)
        .expect("an image that a JPEG can hold");
    file
}
