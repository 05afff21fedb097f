//! What a face looks like: a vector a model.

use rten_tensor::NdTensor;

use super::align::{Crop, Landmarks, align};
use super::fuse::{Part, fuse, unit};
use super::lanes::Lane;
use super::models::{DLIB, MOBILEFACENET};
use super::network::{LoadError, Network};
use super::picture::Picture;

/// Where the landmarks of a frontal face are in a crop of 112 pixels, as ArcFace has them.
pub const ARCFACE: Landmarks =
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]];
/// Where they are in a crop of 150 pixels, as dlib has them.
const CHIP: Landmarks = [[47.55, 46.60], [100.48, 46.60], [74.01, 76.56], [50.41, 103.02], [97.61, 103.02]];
/// The side of the crop that goes with it.
pub const ARCFACE_SIDE: usize = 112;
const CHIP_SIDE: usize = 150;

/// Which models make the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embedders {
    /// dlib and MobileFaceNet together, which tell persons apart best.
    #[default]
    Both,
    /// dlib alone, which is in the public domain.
    Dlib,
}

impl Embedders {
    /// What events call the signatures; those of another name cannot be compared with these.
    pub const fn model(self) -> &'static str {
        match self {
            Self::Both => "dlib+mobilefacenet-1",
            Self::Dlib => "dlib-1",
        }
    }

    /// How long the signatures are.
    pub const fn dimensions(self) -> usize {
        match self {
            Self::Both => 128 + 512,
            Self::Dlib => 128,
        }
    }
}

/// The loaded models.
pub struct Embedder {
    dlib: Network<1>,
    mobilefacenet: Option<Network<1>>,
    mirror: bool,
}

impl Embedder {
    /// Loads the models; with `mirror` each face is also seen in the mirror.
    pub fn load(embedders: Embedders, mirror: bool) -> Result<Self, LoadError> {
        let mobilefacenet = match embedders {
            Embedders::Both => Some(Network::load(&MOBILEFACENET, ["output"])?),
            Embedders::Dlib => None,
        };
        Ok(Self { dlib: Network::load(&DLIB, ["embedding"])?, mobilefacenet, mirror })
    }

    /// The signature's direction, given the face as `chip` cuts it out.
    pub fn embed(
        &self,
        picture: &Picture<'_>,
        landmarks: &Landmarks,
        chip: &Crop,
        lane: &Lane<'_>,
    ) -> Option<Vec<f32>> {
        let dlib = self.both_sides(chip, |crop| self.dlib.run(rgb(crop), lane));
        let dlib = Part { vector: &dlib, mean: None, weight: 2.0 };
        let Some(mobilefacenet) = &self.mobilefacenet else { return Some(fuse(&[dlib])) };
        let crop = align(picture, landmarks, &ARCFACE, ARCFACE_SIDE)?;
        let vector = self.both_sides(&crop, |crop| mobilefacenet.run(bgr(crop), lane));
        Some(fuse(&[dlib, Part { vector: &vector, mean: None, weight: 1.0 }]))
    }

    /// What a model says of the crop, and of its mirror image where that is wanted.
    fn both_sides(&self, crop: &Crop, run: impl Fn(&Crop) -> [Vec<f32>; 1]) -> Vec<f32> {
        let [seen] = run(crop);
        if !self.mirror {
            return seen;
        }
        let [mirrored] = run(&crop.mirrored());
        unit(seen).into_iter().zip(unit(mirrored)).map(|(a, b)| a + b).collect()
    }
}

/// The face as dlib wants it; quality is measured on the same crop.
pub fn chip(picture: &Picture<'_>, landmarks: &Landmarks) -> Option<Crop> {
    align(picture, landmarks, &CHIP, CHIP_SIDE)
}

/// 0 to 255, red first.
fn rgb(crop: &Crop) -> NdTensor<f32, 4> {
    planes(crop, |pixel| pixel)
}

/// About -1 to 1, blue first.
fn bgr(crop: &Crop) -> NdTensor<f32, 4> {
    planes(crop, |[red, green, blue]| [blue, green, red].map(|channel| (channel - 127.0) / 128.0))
}

/// A channel after the other.
pub fn planes<const C: usize>(crop: &Crop, pixel: impl Fn([f32; 3]) -> [f32; C]) -> NdTensor<f32, 4> {
    let area = crop.side * crop.side;
    let mut planes = vec![0.0; C * area];
    for (n, rgb) in crop.rgb.iter().enumerate() {
        for (channel, value) in pixel(*rgb).into_iter().enumerate() {
            planes[channel * area + n] = value;
        }
    }
    NdTensor::from_data([1, C, crop.side, crop.side], planes)
}
