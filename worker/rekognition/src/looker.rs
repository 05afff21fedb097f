//! From a file to the faces in it.

use std::sync::Arc;

use sparks_domain::{FaceBox, RejectCode, SeenFace};
use sparks_engine::{Darkroom, DarkroomError, FaceEngine, Pixels};

use crate::refusal::{Kind, Refusal};

/// A photo has at least so many pixels on each side.
const LEAST_SIDE: u32 = 80;
/// No more faces of a photo are looked at: the largest.
const MOST_FACES: usize = 100;

/// Who decodes photos and looks for faces.
pub struct Looker {
    engine: Arc<dyn FaceEngine>,
    darkroom: Arc<dyn Darkroom>,
}

/// A face, and how large and bright the photo is there.
#[derive(Debug)]
pub struct Sight {
    pub face: SeenFace,
    /// Pixels of the photo across and down, as far as their proportion matters.
    pub photo: (f32, f32),
    /// 0 is black, 100 is white.
    pub brightness: f32,
}

impl Looker {
    pub fn new(engine: Arc<dyn FaceEngine>, darkroom: Arc<dyn Darkroom>) -> Self {
        Self { engine, darkroom }
    }

    /// The faces, the largest first.
    pub fn look(&self, file: &[u8]) -> Result<Vec<Sight>, Refusal> {
        if self.darkroom.measure(file).is_some_and(|(width, height)| width.min(height) < LEAST_SIDE) {
            let text = format!("Request has invalid parameters: a photo has at least {LEAST_SIDE} pixels on each side");
            return Err(Refusal::new(Kind::InvalidParameter, text));
        }
        let pixels = self.darkroom.open(file).map_err(refused)?;
        let mut faces = self.engine.look(&pixels);
        let area = |face: &SeenFace| face.bounds.width * face.bounds.height;
        faces.sort_by(|a, b| area(b).total_cmp(&area(a)));
        faces.truncate(MOST_FACES);
        Ok(faces.into_iter().map(|face| sight(face, &pixels)).collect())
    }

    /// The largest face, which must be there.
    pub fn largest(&self, file: &[u8]) -> Result<Sight, Refusal> {
        self.look(file)?.into_iter().next().ok_or_else(no_face)
    }
}

/// What the service says of a photo without the face that it needs.
pub fn no_face() -> Refusal {
    Refusal::new(Kind::InvalidParameter, "There are no faces in the image. Should be at least 1.")
}

fn sight(mut face: SeenFace, pixels: &Pixels) -> Sight {
    // As it is kept, so that the same face of the same file is known again.
    face.bounds = <[f32; 4]>::from(face.bounds).into();
    let brightness = brightness(pixels, face.bounds);
    Sight { face, photo: (pixels.width as f32, pixels.height as f32), brightness }
}

fn brightness(pixels: &Pixels, bounds: FaceBox) -> f32 {
    let span = |from: f32, length: f32, side: u32| {
        let place = |share: f32| (share.clamp(0.0, 1.0) * side as f32).round() as usize;
        place(from)..place(from + length)
    };
    let (across, down) = (span(bounds.x, bounds.width, pixels.width), span(bounds.y, bounds.height, pixels.height));
    let (mut sum, mut count) = (0.0_f64, 0.0_f64);
    for row in pixels.rgb.chunks_exact((pixels.width as usize * 3).max(1)).skip(down.start).take(down.len()) {
        for pixel in row.chunks_exact(3).skip(across.start).take(across.len()) {
            sum += 0.299 * f64::from(pixel[0]) + 0.587 * f64::from(pixel[1]) + 0.114 * f64::from(pixel[2]);
            count += 1.0;
        }
    }
    if count == 0.0 { 0.0 } else { (sum / count / 2.55) as f32 }
}

fn refused(error: DarkroomError) -> Refusal {
    match error {
        DarkroomError::Unavailable(reason) => {
            tracing::error!(reason, "nobody could decode a photo");
            Refusal::internal()
        }
        DarkroomError::Rejected(rejection) => match rejection.code {
            RejectCode::TooManyBytes | RejectCode::TooManyPixels | RejectCode::TooMuchMetadata => {
                Refusal::new(Kind::ImageTooLarge, format!("Image size is too large: {}", rejection.message))
            }
            RejectCode::Empty | RejectCode::UnsupportedFormat | RejectCode::Damaged => {
                Refusal::new(Kind::InvalidImageFormat, "Request has invalid image format")
            }
        },
    }
}
