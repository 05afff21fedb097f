//! Face embeddings.

use rten_tensor::NdTensor;

use super::align::{AlignedCrop, Landmarks, align};
use super::fuse::{WeightedEmbedding, fuse, normalize};
use super::image_view::ImageView;
use super::models::{COHORT, DLIB, MOBILEFACENET, SFACE};
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

/// The weight of SFace beside MobileFaceNet, measured on seven labelled sets.
const SFACE_WEIGHT: f32 = 1.4;
/// The number of dimensions of SFace.
const SFACE_DIMENSIONS: usize = 128;

/// The models that compute the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embedders {
    /// SFace and MobileFaceNet fused, each centred on the mean of a fixed cohort: the most accurate choice.
    #[default]
    SfaceMobilefacenet,
    /// dlib and MobileFaceNet fused, the default of release 0.1.
    DlibMobilefacenet,
    /// dlib alone, which is in the public domain.
    Dlib,
}

impl Embedders {
    /// All choices, the most accurate first.
    pub const ALL: [Self; 3] = [Self::SfaceMobilefacenet, Self::DlibMobilefacenet, Self::Dlib];

    /// Returns the model name in events, which names the cohort too. Signatures of different models cannot be compared.
    pub const fn model(self) -> &'static str {
        match self {
            Self::SfaceMobilefacenet => "sface+mobilefacenet-mean136-1",
            Self::DlibMobilefacenet => "dlib+mobilefacenet-1",
            Self::Dlib => "dlib-1",
        }
    }

    /// Returns the number of dimensions of the signatures.
    pub const fn dimensions(self) -> usize {
        match self {
            Self::SfaceMobilefacenet => SFACE_DIMENSIONS + 512,
            Self::DlibMobilefacenet => 128 + 512,
            Self::Dlib => 128,
        }
    }
}

/// The loaded models.
pub struct Embedder {
    networks: Networks,
    mirror: bool,
}

enum Networks {
    SfaceMobilefacenet { sface: Network<1>, mobilefacenet: Network<1>, cohort: Vec<f32> },
    DlibMobilefacenet { dlib: Network<1>, mobilefacenet: Network<1> },
    Dlib(Network<1>),
}

impl Embedder {
    /// Loads the models. With `mirror`, the mirror image of each face is embedded too.
    pub fn load(embedders: Embedders, mirror: bool) -> Result<Self, LoadError> {
        let dlib = || Network::load(&DLIB, ["embedding"]);
        let mobilefacenet = || Network::load(&MOBILEFACENET, ["output"]);
        let networks = match embedders {
            Embedders::SfaceMobilefacenet => Networks::SfaceMobilefacenet {
                sface: Network::load(&SFACE, ["fc1"])?,
                mobilefacenet: mobilefacenet()?,
                cohort: COHORT.numbers(),
            },
            Embedders::DlibMobilefacenet => {
                Networks::DlibMobilefacenet { dlib: dlib()?, mobilefacenet: mobilefacenet()? }
            }
            Embedders::Dlib => Networks::Dlib(dlib()?),
        };
        Ok(Self { networks, mirror })
    }

    /// Computes the unit vector of a face, given its chip from [`face_chip`].
    pub fn embed(
        &self,
        image: &ImageView<'_>,
        landmarks: &Landmarks,
        chip: &AlignedCrop,
        thread: &PooledThread<'_>,
    ) -> Option<Vec<f32>> {
        let run_dlib = |dlib: &Network<1>| self.with_mirror(chip, |crop| dlib.run(rgb(crop), thread));
        let run_mobilefacenet =
            |model: &Network<1>, crop: &AlignedCrop| self.with_mirror(crop, |crop| model.run(bgr(crop), thread));
        let arcface_crop = || align(image, landmarks, &ARCFACE_TEMPLATE, ARCFACE_SIDE);
        Some(match &self.networks {
            Networks::SfaceMobilefacenet { sface, mobilefacenet, cohort } => {
                let crop = arcface_crop()?;
                let (sface_mean, mobilefacenet_mean) = cohort.split_at(SFACE_DIMENSIONS);
                let sface = self.with_mirror(&crop, |crop| sface.run(rgb(crop), thread));
                let mobilefacenet = run_mobilefacenet(mobilefacenet, &crop);
                fuse(&[
                    WeightedEmbedding { vector: &sface, mean: Some(sface_mean), weight: SFACE_WEIGHT },
                    WeightedEmbedding { vector: &mobilefacenet, mean: Some(mobilefacenet_mean), weight: 1.0 },
                ])
            }
            Networks::DlibMobilefacenet { dlib, mobilefacenet } => {
                let (dlib, mobilefacenet) = (run_dlib(dlib), run_mobilefacenet(mobilefacenet, &arcface_crop()?));
                fuse(&[
                    WeightedEmbedding { vector: &dlib, mean: None, weight: 2.0 },
                    WeightedEmbedding { vector: &mobilefacenet, mean: None, weight: 1.0 },
                ])
            }
            Networks::Dlib(dlib) => fuse(&[WeightedEmbedding { vector: &run_dlib(dlib), mean: None, weight: 2.0 }]),
        })
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
