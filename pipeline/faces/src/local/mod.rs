//! The local face engine: models built into the binary, no network, no GPU.

mod align;
mod attributes;
mod centerface;
mod detect;
mod embed;
mod fuse;
#[cfg(test)]
mod golden;
mod image_view;
mod models;
mod network;
mod nms;
mod plausibility;
mod quality;
mod thread_pools;
mod tiling;

use sparks_domain::{DetectedFace, FaceBox, Point, Signature};
use sparks_engine::{FaceEngine, Pixels};

pub use embed::Embedders;
pub use models::{Model, models};
pub use network::LoadError;

use align::PixelPoint;
use attributes::Attributes;
use centerface::{CenterFace, Detection};
use embed::Embedder;
use image_view::ImageView;
use thread_pools::{PooledThread, ThreadPools};

/// Options of the local engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalOptions {
    /// The models that compute the signature.
    pub models: Embedders,
    /// Whether the mirror image of each face is embedded too: slightly better, at twice the cost.
    pub mirror: bool,
    /// Whether age, gender and emotion are estimated.
    pub attributes: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { models: Embedders::SfaceMobilefacenet, mirror: false, attributes: false }
    }
}

/// Detects faces and computes their embeddings on this machine. Any number of threads may share one engine.
pub struct LocalEngine {
    options: LocalOptions,
    centerface: CenterFace,
    embedder: Embedder,
    attributes: Option<Attributes>,
    pools: ThreadPools,
}

impl LocalEngine {
    /// Loads the models that the options need.
    pub fn load(options: LocalOptions) -> Result<Self, LoadError> {
        Ok(Self {
            options,
            centerface: CenterFace::load()?,
            embedder: Embedder::load(options.models, options.mirror)?,
            attributes: options.attributes.then(Attributes::load).transpose()?,
            pools: ThreadPools::default(),
        })
    }

    fn to_detected_face(
        &self,
        image: &ImageView<'_>,
        detection: &Detection,
        thread: &PooledThread<'_>,
    ) -> Option<DetectedFace> {
        let chip = embed::face_chip(image, &detection.landmarks)?;
        let attributes = self.attributes.as_ref().map(|models| models.estimate(image, &detection.landmarks, thread));
        let vector = self.embedder.embed(image, &detection.landmarks, &chip, thread)?;
        Some(DetectedFace {
            bounds: bounds(image, detection),
            landmarks: detection.landmarks.iter().map(|landmark| to_fractions(image, *landmark)).collect(),
            quality: quality::quality(detection, &chip),
            confidence: detection.score,
            attributes: attributes.flatten().unwrap_or_default(),
            model: self.options.models.model().to_owned(),
            signature: Some(Signature::quantise(&vector)?),
        })
    }
}

impl FaceEngine for LocalEngine {
    fn analyze(&self, pixels: &Pixels) -> Vec<DetectedFace> {
        let Some(image) = ImageView::from_pixels(pixels) else { return Vec::new() };
        let thread = self.pools.acquire();
        let detections = detect::detect(&self.centerface, &image, &thread);
        detections.iter().filter_map(|detection| self.to_detected_face(&image, detection, &thread)).collect()
    }
}

/// Converts a point to fractions of the image.
fn to_fractions(image: &ImageView<'_>, [x, y]: PixelPoint) -> Point {
    Point { x: x / image.width as f32, y: y / image.height as f32 }
}

/// Returns the bounding box as fractions of the image.
fn bounds(image: &ImageView<'_>, detection: &Detection) -> FaceBox {
    let [top_left, bottom_right] = [detection.top_left, detection.bottom_right].map(|point| to_fractions(image, point));
    FaceBox { x: top_left.x, y: top_left.y, width: bottom_right.x - top_left.x, height: bottom_right.y - top_left.y }
}
