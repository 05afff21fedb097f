//! JPEG crops of faces, and whole images as JPEG for face services.

use sparks_domain::{FaceBox, RejectCode, Rejection};
use sparks_engine::Pixels;
use sparks_resize::Filter;

use crate::{
    encode,
    raster::ColourModel,
    reject,
    variant::{ResizePlan, resample},
};

/// The specification of face crops.
#[derive(Debug, Clone, PartialEq)]
pub struct CropSpec {
    /// Padding on each side, as a fraction of the face's own width and height.
    pub padding: f32,
    /// The longest side in pixels. Crops are never enlarged.
    pub side: u32,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
}

impl Default for CropSpec {
    fn default() -> Self {
        Self { padding: 0.35, side: 400, quality: 90 }
    }
}

pub(crate) fn crop_face(pixels: &Pixels, bounds: FaceBox, spec: &CropSpec) -> Result<Vec<u8>, Rejection> {
    check_pixels(pixels)?;
    let (left, width) = span(bounds.x, bounds.width, spec.padding, pixels.width);
    let (top, height) = span(bounds.y, bounds.height, spec.padding, pixels.height);
    let plan = ResizePlan::inside(width, height, spec.side.max(1), spec.side.max(1));
    let plan = ResizePlan { source: [left, top, width, height].map(f64::from), ..plan };
    let rgb = resample(&pixels.rgb, (pixels.width, pixels.height), ColourModel::Rgb, &plan, Filter::Lanczos3)?;
    encode::jpeg(&rgb, plan.width, plan.height, spec.quality)
}

fn check_pixels(pixels: &Pixels) -> Result<(), Rejection> {
    let expected = u64::from(pixels.width) * u64::from(pixels.height) * 3;
    if expected == 0 || expected != pixels.rgb.len() as u64 {
        return Err(reject(RejectCode::Damaged, "failed to encode crop: the image has no pixels"));
    }
    Ok(())
}

/// JPEG qualities to try, best first. All are good enough for face detection.
const QUALITIES: [u8; 4] = [92, 80, 60, 30];

/// Encodes the whole image at the best quality that fits into `max_bytes`.
pub(crate) fn encode_within(pixels: &Pixels, max_bytes: usize) -> Result<Vec<u8>, Rejection> {
    check_pixels(pixels)?;
    for quality in QUALITIES {
        let file = encode::jpeg(&pixels.rgb, pixels.width, pixels.height, quality)?;
        if file.len() <= max_bytes {
            return Ok(file);
        }
    }
    Err(reject(RejectCode::TooManyBytes, format!("failed to encode {pixels:?} as a JPEG of at most {max_bytes} bytes")))
}

/// Returns start and length in whole pixels, padded, clamped to the photo and at least one pixel long.
fn span(start: f32, length: f32, padding: f32, side: u32) -> (u32, u32) {
    let [start, length, padding] = [start, length, padding].map(f64::from);
    let margin = length.max(0.0) * padding.max(0.0);
    // The cast saturates: too large, negative or NaN becomes the nearest integer or 0.
    let first = (((start - margin) * f64::from(side)).round() as u32).min(side - 1);
    let end = (((start + length + margin) * f64::from(side)).round() as u32).clamp(first + 1, side);
    (first, end - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crop_size(pixels: &Pixels, bounds: [f32; 4]) -> (u32, u32) {
        let file = crop_face(pixels, bounds.into(), &CropSpec::default()).expect("a crop");
        let image = image::load_from_memory_with_format(&file, image::ImageFormat::Jpeg).expect("a JPEG");
        (image.width(), image.height())
    }

    fn grey(width: u32, height: u32) -> Pixels {
        Pixels { width, height, rgb: vec![99; (width * height * 3) as usize] }
    }

    #[test]
    fn spans_are_padded_within_the_photo() {
        assert_eq!(span(0.4, 0.2, 0.5, 100), (30, 40));
        assert_eq!(span(0.0, 0.2, 0.5, 100), (0, 30));
        assert_eq!(span(0.9, 0.2, 0.5, 100), (80, 20));
        assert_eq!(span(-0.1, 0.2, 0.0, 100), (0, 10));
    }

    #[test]
    fn spans_are_never_empty() {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 0.0, 0.5, 1.0, 2.0, f32::MAX];
        for (start, length) in odd.iter().flat_map(|start| odd.map(|length| (*start, length))) {
            for (padding, side) in odd.iter().flat_map(|padding| [1, 2, 100].map(|side| (*padding, side))) {
                let (first, count) = span(start, length, padding, side);
                assert!(count >= 1 && first + count <= side, "{start} {length} {padding} {side}");
            }
        }
    }

    #[test]
    fn crops_shrink_to_the_side_and_never_grow() {
        let photo = grey(1000, 800);
        assert_eq!(crop_size(&photo, [0.4, 0.4, 0.1, 0.1]), (170, 136));
        assert_eq!(crop_size(&photo, [0.25, 0.25, 0.5, 0.5]), (400, 320));
        assert_eq!(crop_size(&photo, [0.95, 0.95, 0.1, 0.1]), (85, 68));
        assert_eq!(crop_size(&photo, [0.0, 0.0, 0.0, 0.0]), (1, 1));
        assert_eq!(crop_size(&grey(1, 1), [0.0, 0.0, 1.0, 1.0]), (1, 1));
    }

    #[test]
    fn an_image_is_encoded_within_the_limit_or_rejected() {
        let noise = |n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8;
        let pixels = Pixels { width: 200, height: 100, rgb: (0..60_000).map(noise).collect() };
        let all = encode_within(&pixels, usize::MAX).expect("a JPEG");
        let less = encode_within(&pixels, all.len() - 1).expect("a JPEG");
        assert!(less.len() < all.len());
        assert!(encode_within(&pixels, 99).is_err());
        assert!(encode_within(&Pixels { width: 10, height: 10, rgb: vec![0; 7] }, usize::MAX).is_err());
    }

    #[test]
    fn missing_pixels_are_rejected() {
        let pixels = Pixels { width: 10, height: 10, rgb: vec![0; 7] };
        assert!(crop_face(&pixels, [0.0, 0.0, 1.0, 1.0].into(), &CropSpec::default()).is_err());
        assert!(crop_face(&grey(0, 10), [0.0, 0.0, 1.0, 1.0].into(), &CropSpec::default()).is_err());
    }
}
