//! Face embeddings.

use rten_tensor::NdTensor;

use super::align::{AlignedCrop, Landmarks, align};
use super::fuse::{WeightedEmbedding, fuse, normalize};
use super::image_view::ImageView;
use super::models::{DLIB, MOBILEFACENET};
use super::network::{LoadError, Network};
use super::thread_pools::PooledThread;

/// The landmarks of a frontal face in an ArcFace crop of 112 pixels.
pub const ARCFACE_TEMPLATE: Landmarks =
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]];
/// The landmarks of a frontal face in a dlib face chip of 150 pixels.
const DLIB_TEMPLATE: Landmarks = [[47.55, 46.60], [100.48, 46.60], [74.01, 76.56], [50.41, 103.02], [97.61, 103.02]];
/// The side of an ArcFace crop.
pub const ARCFACE_SIDE: usize = 112;
const DLIB_SIDE: usize = 150;

/// The models that compute the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embedders {
    /// dlib and MobileFaceNet fused, the most accurate choice.
    #[default]
    Both,
    /// dlib alone, which is in the public domain.
    Dlib,
}

impl Embedders {
    /// Returns the model name in events. Signatures of different models cannot be compared.
    pub const fn model(self) -> &'static str {
        match self {
            Self::Both => "dlib+mobilefacenet-1",
            Self::Dlib => "dlib-1",
        }
    }

    /// Returns the number of dimensions of the signatures.
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
    /// Loads the models. With `mirror`, the mirror image of each face is embedded too.
    pub fn load(embedders: Embedders, mirror: bool) -> Result<Self, LoadError> {
        let mobilefacenet = match embedders {
            Embedders::Both => Some(Network::load(&MOBILEFACENET, ["output"])?),
            Embedders::Dlib => None,
        };
        Ok(Self { dlib: Network::load(&DLIB, ["embedding"])?, mobilefacenet, mirror })
    }

    /// Computes the unit vector of a face, given its chip from [`face_chip`].
    pub fn embed(
        &self,
        image: &ImageView<'_>,
        landmarks: &Landmarks,
        chip: &AlignedCrop,
        thread: &PooledThread<'_>,
    ) -> Option<Vec<f32>> {
        let dlib = self.with_mirror(chip, |crop| self.dlib.run(rgb(crop), thread));
        let dlib = WeightedEmbedding { vector: &dlib, mean: None, weight: 2.0 };
        let Some(mobilefacenet) = &self.mobilefacenet else { return Some(fuse(&[dlib])) };
        let crop = align(image, landmarks, &ARCFACE_TEMPLATE, ARCFACE_SIDE)?;
        let vector = self.with_mirror(&crop, |crop| mobilefacenet.run(bgr(crop), thread));
        Some(fuse(&[dlib, WeightedEmbedding { vector: &vector, mean: None, weight: 1.0 }]))
    }

    /// Runs a model on the crop and, if enabled, adds the embedding of its mirror image.
    fn with_mirror(&self, crop: &AlignedCrop, run: impl Fn(&AlignedCrop) -> [Vec<f32>; 1]) -> Vec<f32> {
        let [original] = run(crop);
        if !self.mirror {
            return original;
        }
        let [mirrored] = run(&crop.mirrored());
        normalize(original).into_iter().zip(normalize(mirrored)).map(|(a, b)| a + b).collect()
    }
}

/// Aligns the face to dlib's template; quality is measured on the same crop.
pub fn face_chip(image: &ImageView<'_>, landmarks: &Landmarks) -> Option<AlignedCrop> {
    align(image, landmarks, &DLIB_TEMPLATE, DLIB_SIDE)
}

/// Converts to RGB planes, 0 to 255.
fn rgb(crop: &AlignedCrop) -> NdTensor<f32, 4> {
    to_tensor(crop, |pixel| pixel)
}

/// Converts to BGR planes, about -1 to 1.
fn bgr(crop: &AlignedCrop) -> NdTensor<f32, 4> {
    to_tensor(crop, |[red, green, blue]| [blue, green, red].map(|channel| (channel - 127.0) / 128.0))
}

/// Converts to planar channels.
pub fn to_tensor<const C: usize>(crop: &AlignedCrop, pixel: impl Fn([f32; 3]) -> [f32; C]) -> NdTensor<f32, 4> {
    let area = crop.side * crop.side;
    let mut planes = vec![0.0; C * area];
    for (n, rgb) in crop.rgb.iter().enumerate() {
        for (channel, value) in pixel(*rgb).into_iter().enumerate() {
            planes[channel * area + n] = value;
        }
    }
    NdTensor::from_data([1, C, crop.side, crop.side], planes)
}
