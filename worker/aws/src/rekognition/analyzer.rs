//! Faces found by the service.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use aws_sdk_rekognition::types::{Attribute, BoundingBox, FaceDetail, LandmarkType};
use sparks_domain::{FaceBox, Point, Quality, SeenFace};
use sparks_engine::{AnalyzeError, FaceAnalyzer, Pixels};

use super::{LEAST_SIDE, Rekognition, attributes::attributes};

/// What events call the analyzer, and the model of faces that nobody has described.
const NAME: &str = "rekognition";

/// Asks the service for faces.
pub struct RekognitionFaces {
    service: Rekognition,
    attributes: bool,
}

impl RekognitionFaces {
    /// Asks this service, for age, gender, emotions and the like only where somebody wants them.
    pub fn new(service: Rekognition, attributes: bool) -> Self {
        Self { service, attributes }
    }
}

#[async_trait]
impl FaceAnalyzer for RekognitionFaces {
    fn name(&self) -> &str {
        NAME
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        if pixels.width < LEAST_SIDE || pixels.height < LEAST_SIDE {
            tracing::debug!(width = pixels.width, height = pixels.height, "too small for Rekognition: no faces");
            return Ok(Vec::new());
        }
        let whole = Arc::clone(&pixels);
        let image = self.service.image(move || Some((whole, ()))).await.map_err(AnalyzeError::Refused)?;
        let Some((image, ())) = image else { return Ok(Vec::new()) };
        let attribute = if self.attributes { Attribute::All } else { Attribute::Default };
        let detect = || self.service.0.client.detect_faces().image(image.clone()).attributes(attribute.clone()).send();
        match self.service.call("DetectFaces", detect).await {
            Ok(answer) => {
                let mut faces: Vec<SeenFace> =
                    answer.face_details().iter().filter_map(|detail| seen(detail, &pixels, self.attributes)).collect();
                // As one reads.
                faces.sort_by(|a, b| a.bounds.y.total_cmp(&b.bounds.y).then(a.bounds.x.total_cmp(&b.bounds.x)));
                Ok(faces)
            }
            Err(trouble) if super::is_no_face(&trouble) => Ok(Vec::new()),
            Err(trouble) => Err(self.service.explained(trouble).into()),
        }
    }

    fn is_paid(&self) -> bool {
        true
    }

    async fn check(&self) -> Result<(), AnalyzeError> {
        Ok(self.service.check().await?)
    }
}

fn seen(detail: &FaceDetail, pixels: &Pixels, with_attributes: bool) -> Option<SeenFace> {
    let bounds = bounds(detail.bounding_box()?)?;
    let (across, down) = (bounds.width * pixels.width as f32, bounds.height * pixels.height as f32);
    let sharpness = detail.quality().and_then(|quality| quality.sharpness()).map_or(1.0, |sharpness| sharpness / 100.0);
    Some(SeenFace {
        bounds,
        landmarks: landmarks(detail),
        quality: Quality { size: across.min(down), sharpness, turn: turn(detail) },
        confidence: detail.confidence().map_or(1.0, |confidence| confidence / 100.0),
        attributes: if with_attributes { attributes(detail) } else { BTreeMap::new() },
        model: NAME.to_owned(),
        signature: None,
    })
}

/// The box within the picture: a face at the edge may reach beyond it.
pub(super) fn bounds(found: &BoundingBox) -> Option<FaceBox> {
    let (x, y) = (found.left()?, found.top()?);
    let (right, bottom) = ((x + found.width()?).min(1.0), (y + found.height()?).min(1.0));
    let (x, y) = (x.max(0.0), y.max(0.0));
    (right > x && bottom > y).then_some(FaceBox { x, y, width: right - x, height: bottom - y })
}

/// Eyes, nose and corners of the mouth; none where one is missing.
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

/// How far the face looks away, sideways or up and down, whichever is more.
fn turn(detail: &FaceDetail) -> Option<f32> {
    let pose = detail.pose()?;
    Some((pose.yaw()?.abs().max(pose.pitch()?.abs()) / 90.0).min(1.0))
}
