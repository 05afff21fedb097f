//! From a file to pixels, in the colours they are stored in.

use std::{error::Error as _, io::Cursor};

use image::{
    ColorType, ImageDecoder, ImageError,
    codecs::{gif::GifDecoder, png::PngDecoder, webp::WebPDecoder},
};
use sparks_domain::{RejectCode, Rejection};

use crate::{
    Limits,
    format::Format,
    header::jpeg,
    negative::{Film, Negative},
    raster::{Model, Raster},
    reject,
};

/// The first frame of a file whose header has been checked, of at least so many eighths of its size.
pub(crate) fn decode(format: Format, file: &[u8], eighths: u32, limits: &Limits) -> Result<Negative, Rejection> {
    let cursor = Cursor::new(file);
    let refused = |error| in_words(format, &error);
    let mut negative = match format {
        Format::Jpeg => Negative {
            film: Film::Planes(sparks_jpeg::decode(file, eighths).map_err(jpeg::rejection)?),
            profile: jpeg::profile(file),
        },
        // This decoder unpacks ICC profiles and keeps texts: neither needs more than a file may have.
        Format::Png => {
            let side_bytes = limits.of_decoder(limits.max_bytes);
            pixels(format, PngDecoder::with_limits(cursor, side_bytes).map_err(refused)?, limits)?
        }
        Format::WebP => pixels(format, WebPDecoder::new(cursor).map_err(refused)?, limits)?,
        Format::Gif => pixels(format, GifDecoder::new(cursor).map_err(refused)?, limits)?,
    };
    negative.profile = negative.profile.filter(|profile| profile.len() as u64 <= limits.max_metadata_bytes);
    Ok(negative)
}

fn pixels(format: Format, mut decoder: impl ImageDecoder, limits: &Limits) -> Result<Negative, Rejection> {
    let refused = |error| in_words(format, &error);
    // The decoder may have read another size than we did; what it allocates goes by its own.
    let (width, height) = decoder.dimensions();
    limits.check_size(width, height)?;
    decoder.set_limits(limits.of_decoder(limits.max_pixels.saturating_mul(4))).map_err(refused)?;
    // A profile that cannot be read is as good as none.
    let profile = decoder.icc_profile().ok().flatten();

    let colours = decoder.color_type();
    let mut samples = vec![0; usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX)];
    decoder.read_image(&mut samples).map_err(refused)?;

    if matches!(colours, ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16) {
        to_eight_bits(&mut samples);
    }
    let model = match (colours.has_color(), colours.has_alpha()) {
        (false, false) => Model::Grey,
        (false, true) => Model::GreyAlpha,
        (true, false) => Model::Rgb,
        (true, true) => Model::Rgba,
    };
    let raster = Raster { width, height, model, samples }.without_idle_alpha();
    Ok(Negative { film: Film::Raster(raster), profile })
}

/// In place: sixteen bits of the largest photo are too much to have one and a half times.
fn to_eight_bits(samples: &mut Vec<u8>) {
    let count = samples.len() / 2;
    for at in 0..count {
        let wide = u16::from_ne_bytes([samples[at * 2], samples[at * 2 + 1]]);
        samples[at] = ((u32::from(wide) + 128) / 257) as u8;
    }
    samples.truncate(count);
    samples.shrink_to_fit();
}

fn in_words(format: Format, error: &ImageError) -> Rejection {
    match error {
        ImageError::Limits(_) => {
            let message = format!("the {} needs more memory than a photo may have: save it anew", format.name());
            reject(RejectCode::TooManyPixels, message)
        }
        ImageError::Unsupported(feature) => {
            let message = format!("this kind of {} is not supported ({feature}): save it anew", format.name());
            reject(RejectCode::UnsupportedFormat, message)
        }
        ImageError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => cut_short(format),
        // The outer text says no more than which format it was.
        ImageError::Decoding(decoding) => {
            damaged(format, decoding.source().map_or(decoding.to_string(), <_>::to_string))
        }
        other => damaged(format, other.to_string()),
    }
}

fn cut_short(format: Format) -> Rejection {
    let message = format!("the {} ends before its pixels do: the file is cut short", format.name());
    reject(RejectCode::Damaged, message)
}

fn damaged(format: Format, reason: String) -> Rejection {
    // A PNG's decoder goes on with its own data structures.
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
