//! Encodes pixels to WebP and JPEG files. Only pixels are passed in, so no metadata reaches the output.

use std::ops::RangeInclusive;

use image::{ExtendedColorType, ImageEncoder, codecs::jpeg::JpegEncoder};
use sparks_domain::{RejectCode, Rejection};
use sparks_webp::Settings;
use webp::{Encoder, WebPConfig};

use crate::{reject, srgb_image::SrgbImage};

/// Encodes a lossy WebP and keeps alpha. The method (effort) is 0 to 6, as in libwebp.
pub(crate) fn webp(image: &SrgbImage, settings: Settings, method: u8) -> Result<Vec<u8>, Rejection> {
    let own = || sparks_webp::encode(&image.samples, image.width as usize, image.height as usize, settings);
    let is_supported = !image.has_alpha && OWN_METHODS.contains(&method);
    let file = if is_supported { own() } else { None };
    file.map_or_else(|| with_libwebp(image, settings, method), Ok)
}

/// Methods for which `sparks_webp` makes an equivalent file with less CPU. It supports no alpha and no other method.
const OWN_METHODS: RangeInclusive<u8> = 3..=4;

fn with_libwebp(image: &SrgbImage, settings: Settings, method: u8) -> Result<Vec<u8>, Rejection> {
    let failed = |reason: String| {
        let (width, height) = (image.width, image.height);
        reject(RejectCode::TooManyPixels, format!("failed to encode {width} x {height} pixels as WebP: {reason}"))
    };
    let mut config = WebPConfig::new().map_err(|()| failed("libwebp version mismatch".into()))?;
    config.quality = settings.quality.clamp(0.0, 100.0);
    config.use_sharp_yuv = settings.sharp_yuv.into();
    config.method = method.min(6).into();
    let encoder = if image.has_alpha {
        Encoder::from_rgba(&image.samples, image.width, image.height)
    } else {
        Encoder::from_rgb(&image.samples, image.width, image.height)
    };
    Ok(encoder.encode_advanced(&config).map_err(|error| failed(format!("{error:?}")))?.to_vec())
}

/// Encodes a baseline JPEG. The quality is 1 to 100.
pub(crate) fn jpeg(rgb: &[u8], width: u32, height: u32, quality: u8) -> Result<Vec<u8>, Rejection> {
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, quality.clamp(1, 100))
        .write_image(rgb, width, height, ExtendedColorType::Rgb8)
        .map_err(|e| reject(RejectCode::Damaged, format!("failed to encode JPEG: {e}")))?;
    Ok(file)
}
