//! The face analyzer on Rekognition.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use aws_sdk_rekognition::types::{Attribute, BoundingBox, FaceDetail, LandmarkType};
use sparks_domain::{DetectedFace, FaceBox, Point, Quality};
use sparks_engine::{AnalyzeError, FaceAnalyzer, Pixels};

use super::{MIN_SIDE_PX, Rekognition, face_attributes::attributes};

/// The name of the analyzer in events, and the model of faces without a signature.
const NAME: &str = "rekognition";

/// Detects faces with `DetectFaces`.
pub struct RekognitionAnalyzer {
    service: Rekognition,
    attributes: bool,
}

impl RekognitionAnalyzer {
    /// Creates an analyzer; with `attributes` it also requests age, gender, emotions and similar.
    pub fn new(service: Rekognition, attributes: bool) -> Self {
        Self { service, attributes }
    }
}

#[async_trait]
impl FaceAnalyzer for RekognitionAnalyzer {
    fn name(&self) -> &str {
        NAME
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        if pixels.width < MIN_SIDE_PX || pixels.height < MIN_SIDE_PX {
            tracing::debug!(
                width = pixels.width,
                height = pixels.height,
                "photo is too small for Rekognition; no faces"
            );
            return Ok(Vec::new());
        }
        let whole = Arc::clone(&pixels);
        let image = self.service.image(move || Some((whole, ()))).await.map_err(AnalyzeError::Refused)?;
        let Some((image, ())) = image else { return Ok(Vec::new()) };
        let attribute = if self.attributes { Attribute::All } else { Attribute::Default };
        let detect = || self.service.0.client.detect_faces().image(image.clone()).attributes(attribute.clone()).send();
        match self.service.call("DetectFaces", detect).await {
            Ok(answer) => {
                let mut faces: Vec<DetectedFace> = answer
                    .face_details()
                    .iter()
                    .filter_map(|detail| detected_face(detail, &pixels, self.attributes))
                    .collect();
                // Top to bottom, left to right: an order that does not depend on the response.
                faces.sort_by(|a, b| a.bounds.y.total_cmp(&b.bounds.y).then(a.bounds.x.total_cmp(&b.bounds.x)));
                Ok(faces)
            }
            Err(error) if super::is_no_face_found(&error) => Ok(Vec::new()),
            Err(error) => Err(self.service.with_remedy(error).into()),
        }
    }

    fn is_paid(&self) -> bool {
        true
    }

    async fn check(&self) -> Result<(), AnalyzeError> {
        Ok(self.service.check().await?)
    }
}

fn detected_face(detail: &FaceDetail, pixels: &Pixels, with_attributes: bool) -> Option<DetectedFace> {
    let bounds = bounds(detail.bounding_box()?)?;
    let (across, down) = (bounds.width * pixels.width as f32, bounds.height * pixels.height as f32);
    let sharpness = detail.quality().and_then(|quality| quality.sharpness()).map_or(1.0, |sharpness| sharpness / 100.0);
    Some(DetectedFace {
        bounds,
        landmarks: landmarks(detail),
        quality: Quality { size: across.min(down), sharpness, turn: turn(detail) },
        confidence: detail.confidence().map_or(1.0, |confidence| confidence / 100.0),
        attributes: if with_attributes { attributes(detail) } else { BTreeMap::new() },
        model: NAME.to_owned(),
        signature: None,
    })
}

/// Clips the box to the image: Rekognition's boxes may extend beyond the edges.
pub(super) fn bounds(found: &BoundingBox) -> Option<FaceBox> {
    let (x, y) = (found.left()?, found.top()?);
    let (right, bottom) = ((x + found.width()?).min(1.0), (y + found.height()?).min(1.0));
    let (x, y) = (x.max(0.0), y.max(0.0));
    (right > x && bottom > y).then_some(FaceBox { x, y, width: right - x, height: bottom - y })
}

/// Returns eyes, nose and mouth corners; empty if one is missing.
fn landmarks(detail: &FaceDetail) -> Vec<Point> {
    let wanted = [
        LandmarkType::EyeLeft,
        LandmarkType::EyeRight,
        LandmarkType::Nose,
        LandmarkType::MouthLeft,
        LandmarkType::MouthRight,
    ];
    let found = wanted.iter().map(|wanted| {
        let landmark = detail.landmarks().iter().find(|landmark| landmark.r#type() == Some(wanted))?;
        Some(Point { x: landmark.x()?, y: landmark.y()? })
    });
    found.collect::<Option<Vec<Point>>>().unwrap_or_default()
}

/// Returns the larger of yaw and pitch, as a share of 90 degrees.
fn turn(detail: &FaceDetail) -> Option<f32> {
    let pose = detail.pose()?;
    Some((pose.yaw()?.abs().max(pose.pitch()?.abs()) / 90.0).min(1.0))
}
