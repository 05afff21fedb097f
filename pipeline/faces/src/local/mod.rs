//! The local engine: models inside the binary, no network, no GPU.

mod align;
mod attributes;
mod centerface;
mod closer;
mod detect;
mod embed;
mod fuse;
#[cfg(test)]
mod golden;
mod lanes;
mod models;
mod network;
mod overlap;
mod picture;
mod plausible;
mod quality;

use sparks_domain::{FaceBox, Point, SeenFace, Signature};
use sparks_engine::{FaceEngine, Pixels};

pub use embed::Embedders;
pub use models::{Model, models};
pub use network::LoadError;

use align::Place;
use attributes::Attributes;
use centerface::{CenterFace, Sighting};
use embed::Embedder;
use lanes::{Lane, Lanes};
use picture::Picture;

/// What the local engine does, and at which price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalOptions {
    /// The models that make the signature.
    pub models: Embedders,
    /// Whether each face is also seen in the mirror: a little better, at twice the price.
    pub mirror: bool,
    /// Whether age, gender and emotion are guessed.
    pub attributes: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { models: Embedders::Both, mirror: false, attributes: false }
    }
}

/// Finds faces and tells what they look like, on this machine alone. Any number of threads may share one.
pub struct Local {
    options: LocalOptions,
    centerface: CenterFace,
    embedder: Embedder,
    attributes: Option<Attributes>,
    lanes: Lanes,
}

impl Local {
    /// Loads the models that the options need.
    pub fn load(options: LocalOptions) -> Result<Self, LoadError> {
        Ok(Self {
            options,
            centerface: CenterFace::load()?,
            embedder: Embedder::load(options.models, options.mirror)?,
            attributes: options.attributes.then(Attributes::load).transpose()?,
            lanes: Lanes::default(),
        })
    }

    fn seen(&self, picture: &Picture<'_>, sighting: &Sighting, lane: &Lane<'_>) -> Option<SeenFace> {
        let chip = embed::chip(picture, &sighting.landmarks)?;
        let attributes = self.attributes.as_ref().map(|models| models.guess(picture, &sighting.landmarks, lane));
        let vector = self.embedder.embed(picture, &sighting.landmarks, &chip, lane)?;
        Some(SeenFace {
            bounds: bounds(picture, sighting),
            landmarks: sighting.landmarks.iter().map(|place| point(picture, *place)).collect(),
            quality: quality::quality(sighting, &chip),
            confidence: sighting.score,
            attributes: attributes.flatten().unwrap_or_default(),
            model: self.options.models.model().to_owned(),
            signature: Some(Signature::quantise(&vector)?),
        })
    }
}

impl FaceEngine for Local {
    fn look(&self, pixels: &Pixels) -> Vec<SeenFace> {
        let Some(picture) = Picture::of(pixels) else { return Vec::new() };
        let lane = self.lanes.enter();
        let sightings = detect::detect(&self.centerface, &picture, &lane);
        sightings.iter().filter_map(|sighting| self.seen(&picture, sighting, &lane)).collect()
    }
}

/// A place as fractions of the picture.
fn point(picture: &Picture<'_>, [x, y]: Place) -> Point {
    Point { x: x / picture.width as f32, y: y / picture.height as f32 }
}

/// The box as fractions of the picture.
fn bounds(picture: &Picture<'_>, sighting: &Sighting) -> FaceBox {
    let [from, to] = [sighting.from, sighting.to].map(|place| point(picture, place));
    FaceBox { x: from.x, y: from.y, width: to.x - from.x, height: to.y - from.y }
}
