//! From pixels to a file. Only pixels go in, so no metadata can come out.

use std::ops::RangeInclusive;

use image::{ExtendedColorType, ImageEncoder, codecs::jpeg::JpegEncoder};
use sparks_domain::{RejectCode, Rejection};
use sparks_webp::Settings;
use webp::{Encoder, WebPConfig};

use crate::{picture::Picture, reject};

/// Lossy, alpha kept. Method (effort) is 0 to 6.
pub(crate) fn webp(picture: &Picture, settings: Settings, method: u8) -> Result<Vec<u8>, Rejection> {
    let ours = || sparks_webp::encode(&picture.samples, picture.width as usize, picture.height as usize, settings);
    let is_ours = !picture.alpha && OUR_METHODS.contains(&method);
    let file = if is_ours { ours() } else { None };
    file.map_or_else(|| with_libwebp(picture, settings, method), Ok)
}

/// Efforts of which our own encoder makes the same file for less. It knows no alpha, no cheaper way and no dearer one.
const OUR_METHODS: RangeInclusive<u8> = 3..=4;

fn with_libwebp(picture: &Picture, settings: Settings, method: u8) -> Result<Vec<u8>, Rejection> {
    let failed = |reason: String| {
        let (width, height) = (picture.width, picture.height);
        reject(RejectCode::TooManyPixels, format!("no WebP can be made of {width} x {height} pixels: {reason}"))
    };
    let mut config = WebPConfig::new().map_err(|()| failed("libwebp is of another version".into()))?;
    config.quality = settings.quality.clamp(0.0, 100.0);
    config.use_sharp_yuv = settings.sharp_yuv.into();
    config.method = method.min(6).into();
    let encoder = if picture.alpha {
        Encoder::from_rgba(&picture.samples, picture.width, picture.height)
    } else {
        Encoder::from_rgb(&picture.samples, picture.width, picture.height)
    };
    Ok(encoder.encode_advanced(&config).map_err(|error| failed(format!("{error:?}")))?.to_vec())
}

/// Quality 1 to 100.
pub(crate) fn jpeg(rgb: &[u8], width: u32, height: u32, quality: u8) -> Result<Vec<u8>, Rejection> {
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, quality.clamp(1, 100))
        .write_image(rgb, width, height, ExtendedColorType::Rgb8)
        .map_err(|e| reject(RejectCode::Damaged, format!("no JPEG can be made of the crop: {e}")))?;
    Ok(file)
}
