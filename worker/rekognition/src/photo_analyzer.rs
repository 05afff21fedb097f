//! Decodes photos and detects faces.

use std::sync::Arc;

use sparks_domain::{DetectedFace, FaceBox, RejectCode};
use sparks_engine::{FaceEngine, ImageError, ImageProcessor, Pixels};

use crate::api_error::{ApiError, ErrorCode};

/// Minimum width and height of a photo in pixels.
const MIN_SIDE: u32 = 80;
/// Maximum number of faces per photo; the largest are kept.
const MAX_FACES: usize = 100;

/// Decodes photos and detects faces.
pub struct PhotoAnalyzer {
    engine: Arc<dyn FaceEngine>,
    image_processor: Arc<dyn ImageProcessor>,
}

/// A detected face, with properties of its photo.
#[derive(Debug)]
pub struct AnalyzedFace {
    pub face: DetectedFace,
    /// Width and height of the decoded photo.
    pub photo_size: (f32, f32),
    /// Mean brightness of the face, 0 (black) to 100 (white).
    pub brightness: f32,
}

impl PhotoAnalyzer {
    pub fn new(engine: Arc<dyn FaceEngine>, image_processor: Arc<dyn ImageProcessor>) -> Self {
        Self { engine, image_processor }
    }

    /// Returns the faces of a photo, the largest first.
    pub fn analyze(&self, file: &[u8]) -> Result<Vec<AnalyzedFace>, ApiError> {
        if self.image_processor.dimensions(file).is_some_and(|(width, height)| width.min(height) < MIN_SIDE) {
            let text =
                format!("Request has invalid parameters: image must have at least {MIN_SIDE} pixels on each side");
            return Err(ApiError::new(ErrorCode::InvalidParameter, text));
        }
        let pixels = self.image_processor.decode(file).map_err(image_error)?;
        let mut faces = self.engine.analyze(&pixels);
        let area = |face: &DetectedFace| face.bounds.width * face.bounds.height;
        faces.sort_by(|a, b| area(b).total_cmp(&area(a)));
        faces.truncate(MAX_FACES);
        Ok(faces.into_iter().map(|face| to_analyzed_face(face, &pixels)).collect())
    }

    /// Returns the largest face; an error if there is none.
    pub fn largest(&self, file: &[u8]) -> Result<AnalyzedFace, ApiError> {
        self.analyze(file)?.into_iter().next().ok_or_else(no_face)
    }
}

/// Returns the error for a photo without a face.
pub fn no_face() -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, "There are no faces in the image. Should be at least 1.")
}

fn to_analyzed_face(mut face: DetectedFace, pixels: &Pixels) -> AnalyzedFace {
    // Rounded as it is stored, so that the same face of the same file compares equal.
    face.bounds = <[f32; 4]>::from(face.bounds).into();
    let brightness = brightness(pixels, face.bounds);
    AnalyzedFace { face, photo_size: (pixels.width as f32, pixels.height as f32), brightness }
}

/// Returns the mean luma (ITU-R BT.601) within the box.
fn brightness(pixels: &Pixels, bounds: FaceBox) -> f32 {
    let span = |from: f32, length: f32, side: u32| {
        let pixel = |fraction: f32| (fraction.clamp(0.0, 1.0) * side as f32).round() as usize;
        pixel(from)..pixel(from + length)
    };
    let (columns, rows) = (span(bounds.x, bounds.width, pixels.width), span(bounds.y, bounds.height, pixels.height));
    let (mut sum, mut count) = (0.0_f64, 0.0_f64);
    for row in pixels.rgb.chunks_exact((pixels.width as usize * 3).max(1)).skip(rows.start).take(rows.len()) {
        for pixel in row.chunks_exact(3).skip(columns.start).take(columns.len()) {
            sum += 0.299 * f64::from(pixel[0]) + 0.587 * f64::from(pixel[1]) + 0.114 * f64::from(pixel[2]);
            count += 1.0;
        }
    }
    if count == 0.0 { 0.0 } else { (sum / count / 2.55) as f32 }
}

fn image_error(error: ImageError) -> ApiError {
    match error {
        ImageError::Unavailable(reason) => {
            tracing::error!(reason, "failed to decode a photo: decoder unavailable");
            ApiError::internal()
        }
        ImageError::Rejected(rejection) => match rejection.code {
            RejectCode::TooManyBytes | RejectCode::TooManyPixels | RejectCode::TooMuchMetadata => {
                ApiError::new(ErrorCode::ImageTooLarge, format!("Image size is too large: {}", rejection.message))
            }
            RejectCode::Empty | RejectCode::UnsupportedFormat | RejectCode::Damaged => {
                ApiError::new(ErrorCode::InvalidImageFormat, "Request has invalid image format")
            }
        },
    }
}
