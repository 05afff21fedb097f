//! Decodes a file to pixels in the colours they are stored in.

use std::{error::Error as _, io::Cursor};

use image::{
    ColorType, ImageDecoder, ImageError,
    codecs::{gif::GifDecoder, png::PngDecoder, webp::WebPDecoder},
};
use sparks_domain::{RejectCode, Rejection};

use crate::{
    Limits,
    decoded_image::{DecodedImage, PixelData},
    format::Format,
    header::jpeg,
    raster::{ColourModel, Raster},
    reject,
};

/// Decodes the first frame of a file whose header has been checked. A JPEG is decoded at `scale_num / 8` of its size.
pub(crate) fn decode(format: Format, file: &[u8], scale_num: u32, limits: &Limits) -> Result<DecodedImage, Rejection> {
    let cursor = Cursor::new(file);
    let rejected = |error| to_rejection(format, &error);
    let mut decoded = match format {
        Format::Jpeg => DecodedImage {
            pixels: PixelData::Planes(sparks_jpeg::decode(file, scale_num).map_err(jpeg::rejection)?),
            profile: jpeg::profile(file),
        },
        // The PNG decoder inflates ICC profiles and keeps text chunks; neither needs more than a file may have.
        Format::Png => {
            let aux_limits = limits.decoder_limits(limits.max_bytes);
            decode_raster(format, PngDecoder::with_limits(cursor, aux_limits).map_err(rejected)?, limits)?
        }
        Format::WebP => decode_raster(format, WebPDecoder::new(cursor).map_err(rejected)?, limits)?,
        Format::Gif => decode_raster(format, GifDecoder::new(cursor).map_err(rejected)?, limits)?,
    };
    decoded.profile = decoded.profile.filter(|profile| profile.len() as u64 <= limits.max_metadata_bytes);
    Ok(decoded)
}

fn decode_raster(format: Format, mut decoder: impl ImageDecoder, limits: &Limits) -> Result<DecodedImage, Rejection> {
    let rejected = |error| to_rejection(format, &error);
    // The decoder allocates by its own reading of the dimensions, which may differ from the header check.
    let (width, height) = decoder.dimensions();
    limits.check_size(width, height)?;
    decoder.set_limits(limits.decoder_limits(limits.max_pixels.saturating_mul(4))).map_err(rejected)?;
    // An unreadable profile counts as none.
    let profile = decoder.icc_profile().ok().flatten();

    let color_type = decoder.color_type();
    let mut samples = vec![0; usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX)];
    decoder.read_image(&mut samples).map_err(rejected)?;

    if matches!(color_type, ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16) {
        to_eight_bits(&mut samples);
    }
    let model = match (color_type.has_color(), color_type.has_alpha()) {
        (false, false) => ColourModel::Grey,
        (false, true) => ColourModel::GreyAlpha,
        (true, false) => ColourModel::Rgb,
        (true, true) => ColourModel::Rgba,
    };
    let raster = Raster { width, height, model, samples }.without_opaque_alpha();
    Ok(DecodedImage { pixels: PixelData::Raster(raster), profile })
}

/// Converts in place: a second buffer for the largest 16-bit photo would exceed the memory limit.
fn to_eight_bits(samples: &mut Vec<u8>) {
    let count = samples.len() / 2;
    for at in 0..count {
        let wide = u16::from_ne_bytes([samples[at * 2], samples[at * 2 + 1]]);
        samples[at] = ((u32::from(wide) + 128) / 257) as u8;
    }
    samples.truncate(count);
    samples.shrink_to_fit();
}

fn to_rejection(format: Format, error: &ImageError) -> Rejection {
    match error {
        ImageError::Limits(_) => {
            let message = format!("the {} needs more memory than a photo may have: save it again", format.name());
            reject(RejectCode::TooManyPixels, message)
        }
        ImageError::Unsupported(feature) => {
            let message = format!("this kind of {} is not supported ({feature}): save it again", format.name());
            reject(RejectCode::UnsupportedFormat, message)
        }
        ImageError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => truncated(format),
        // The outer error only names the format.
        ImageError::Decoding(decoding) => {
            damaged(format, decoding.source().map_or(decoding.to_string(), <_>::to_string))
        }
        other => damaged(format, other.to_string()),
    }
}

fn truncated(format: Format) -> Rejection {
    let message = format!("the {} ends before its pixels do: the file is truncated", format.name());
    reject(RejectCode::Damaged, message)
}

fn damaged(format: Format, reason: String) -> Rejection {
    // The PNG decoder appends a debug dump of its data structures.
    let reason = [" while decoding", ": ChunkType {", "\n"]
        .iter()
        .fold(&reason[..], |reason, end| reason.split(end).next().unwrap_or(reason));
    let reason = reason.trim_matches(['"', '.']);
    reject(RejectCode::Damaged, format!("the {} is damaged: {reason}", format.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_round_to_eight() {
        let wide = [0_u16, 128, 129, 257, 32_768, 65_535];
        let mut samples = wide.iter().flat_map(|sample| sample.to_ne_bytes()).collect();
        to_eight_bits(&mut samples);
        assert_eq!(samples, [0, 0, 1, 1, 128, 255]);
    }
}
