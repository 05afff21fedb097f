//! Photos of the simulation: their bytes say which faces they show.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use sparks_domain::{DetectedFace, FaceBox, Quality, RejectCode, Rejection, Scale, Signature};
use sparks_engine::{
    AnalyzeError, EncodedVariant, FaceAnalyzer, ImageError, ImageInfo, ImageProcessor, Pixels, RenderedImage,
};

/// A face in a photo. An identity may have several looks that no engine takes for one person; only an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Look {
    pub identity: u32,
    pub look: u32,
}

/// What a photo shows. The serial number makes each upload a version of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PhotoContent {
    pub serial: u64,
    pub faces: Vec<Look>,
    pub is_damaged: bool,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.identity, self.look)
    }
}

impl fmt::Display for PhotoContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faces: Vec<String> = self.faces.iter().map(ToString::to_string).collect();
        let state = if self.is_damaged { "damaged" } else { "photo" };
        write!(f, "{state} {} {}", self.serial, faces.join(","))
    }
}

impl PhotoContent {
    /// Reads the content of an original or a variant.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let text = text.strip_prefix("large ").or_else(|| text.strip_prefix("medium ")).unwrap_or(text);
        let mut words = text.split(' ');
        let is_damaged = words.next()? == "damaged";
        let serial = words.next()?.parse().ok()?;
        let face = |face: &str| {
            let (identity, look) = face.split_once('.')?;
            Some(Look { identity: identity.parse().ok()?, look: look.parse().ok()? })
        };
        let faces = words.next()?.split(',').filter(|face| !face.is_empty()).map(face).collect::<Option<_>>()?;
        Some(Self { serial, faces, is_damaged })
    }

    /// Returns the face in this box.
    fn face_at(&self, bounds: FaceBox) -> Option<Look> {
        (0..self.faces.len()).find(|n| place(*n) == bounds).map(|n| self.faces[n])
    }

    /// Returns the variant of this name.
    pub fn variant(&self, name: &str) -> Vec<u8> {
        format!("{name} {self}").into_bytes()
    }
}

/// Renders photos of the simulation.
pub(crate) struct SimulatedImageProcessor;

const SIDE: u32 = 100;

fn readable(bytes: &[u8]) -> Result<PhotoContent, ImageError> {
    let damaged = || Rejection { code: RejectCode::Damaged, message: "damaged".into() };
    Ok(PhotoContent::parse(bytes).filter(|content| !content.is_damaged).ok_or_else(damaged)?)
}

impl ImageProcessor for SimulatedImageProcessor {
    fn inspect(&self, _: &[u8]) -> ImageInfo {
        ImageInfo { mime_type: Some("image/jpeg"), extension: Some("jpg"), taken_at: None }
    }

    fn dimensions(&self, _: &[u8]) -> Option<(u32, u32)> {
        Some((SIDE, SIDE))
    }

    fn render(&self, original: &[u8]) -> Result<RenderedImage, ImageError> {
        let content = readable(original)?;
        let variant = |name| EncodedVariant { width: SIDE, height: SIDE, webp: content.variant(name) };
        Ok(RenderedImage {
            mime_type: "image/jpeg",
            width: SIDE,
            height: SIDE,
            taken_at: None,
            large: variant("large"),
            medium: variant("medium"),
            pixels: self.decode(original)?,
        })
    }

    fn decode(&self, encoded: &[u8]) -> Result<Pixels, ImageError> {
        Ok(Pixels { width: SIDE, height: SIDE, rgb: readable(encoded)?.to_string().into_bytes() })
    }

    fn crop(&self, pixels: &Pixels, bounds: FaceBox) -> Result<Vec<u8>, Rejection> {
        let content = readable(&pixels.rgb).map_err(|_| Rejection { code: RejectCode::Damaged, message: "".into() })?;
        Ok(content.face_at(bounds).map(|look| look.to_string()).unwrap_or_default().into_bytes())
    }

    fn encode_jpeg(&self, pixels: &Pixels, _: usize) -> Result<Vec<u8>, Rejection> {
        Ok(pixels.rgb.clone())
    }
}

/// Returns the box of the face with this number.
fn place(n: usize) -> FaceBox {
    FaceBox { x: (n % 50) as f32 / 50.0, y: (n / 50) as f32 / 50.0, width: 0.015, height: 0.015 }
}

/// Returns the face in this box of an image.
pub(crate) fn look_at(pixels: &Pixels, bounds: FaceBox) -> Option<Look> {
    PhotoContent::parse(&pixels.rgb)?.face_at(bounds)
}

/// Finds the faces that a photo says it shows.
pub(crate) struct SimulatedAnalyzer {
    pub model: &'static str,
}

/// The models of simulated signatures: that of workers, and another one whose signatures are not comparable.
pub(crate) const MODEL: &str = "simulated";
pub(crate) const OTHER_MODEL: &str = "simulated-2";
const DIMENSIONS: usize = 512;
/// Axes that are directions of looks; the others make the signatures of one look differ from photo to photo.
const LOOKS: usize = 256;

/// Returns the similarity scale of the models.
pub(crate) fn scale(model: &str) -> Option<Scale> {
    [MODEL, OTHER_MODEL].contains(&model).then_some(Scale { median: 0.0, spread: 0.125, match_from: 4.1 })
}

#[async_trait]
impl FaceAnalyzer for SimulatedAnalyzer {
    fn name(&self) -> &str {
        self.model
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        let Some(content) = PhotoContent::parse(&pixels.rgb) else { return Ok(Vec::new()) };
        let detect = |(n, look): (usize, &Look)| DetectedFace {
            bounds: place(n),
            landmarks: Vec::new(),
            quality: Quality { size: 100.0, sharpness: 1.0, turn: None },
            confidence: 1.0,
            attributes: BTreeMap::new(),
            model: self.model.into(),
            signature: signature(*look, content.serial, self.model),
        };
        Ok(content.faces.iter().enumerate().map(detect).collect())
    }
}

/// Returns the signature of a look: an axis of its own, and a little of another that differs from photo to photo. Where there are
/// more looks than axes, a direction of its own, which differs from others by far in so many dimensions.
fn signature(look: Look, serial: u64, model: &str) -> Option<Signature> {
    let mut vector = [0.0; DIMENSIONS];
    vector[LOOKS + serial as usize % (DIMENSIONS - LOOKS)] = 0.2;
    let axis = (look.identity * 2 + look.look) as usize;
    if axis < LOOKS {
        vector[axis] = 1.0;
    } else {
        let mut rng = fastrand::Rng::with_seed((axis as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        vector.iter_mut().for_each(|x| *x += if rng.bool() { 1.0 } else { -1.0 });
    }
    if model == OTHER_MODEL {
        vector.reverse();
    }
    Signature::quantise(&vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_told_apart_by_far() {
        let looks = || {
            [0, 1, 2, 9, 150, 151, 599].into_iter().flat_map(|identity| (0..2).map(move |look| Look { identity, look }))
        };
        for (a, b) in looks().flat_map(|a| looks().map(move |b| (a, b))) {
            for serial in 0..40 {
                let similarity = signature(a, 1, MODEL).zip(signature(b, serial, MODEL)).map(|(a, b)| a.similarity(&b));
                let is_right =
                    similarity.is_some_and(|similarity| if a == b { similarity > 0.9 } else { similarity < 0.25 });
                assert!(is_right, "{a} and {b} in photo {serial}: {similarity:?}");
            }
        }
    }
}
